"""The harmless half of files that also hold power; and what an author's text says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchflow_core.verify import texts
from benchflow_core.verify.author import AuthorText
from benchflow_core.verify.findings import Finding, as_json
from benchflow_core.verify.gitconfig import harmless_git_config
from benchflow_core.verify.shadows import shadowing


def test_path_lines() -> None:
    text = "# note\n/srv/code\nimport os; os.system('x')\nimport\tsys\n\n../rel\nimportant_folder\n"
    assert texts.path_lines(text) == ["/srv/code", "../rel", "important_folder"]


def test_editable_installs_are_read_as_data() -> None:
    line = "import __editable___demo_0_1_finder; __editable___demo_0_1_finder.install()"
    assert texts.editable_modules(f"# x\n{line}\n") == ["__editable___demo_0_1_finder"]
    assert texts.editable_modules(line + "; import evil") == []
    source = "import os\nMAPPING: dict[str, str] = {'demo': '/app/demo', 'bad': 3, 'rel': 'x'}\nNAMESPACES = {}\n"
    assert texts.editable_places(source) == {"demo": "/app/demo"}
    for bad in ("MAPPING = os.environ", "MAPPING = {", "MAPPING = " + "(" * 500 + ")" * 500, "", "MAPPING: dict"):
        assert texts.editable_places(bad) == {}


def test_hosts() -> None:
    image = "127.0.0.1 localhost\n"
    agents = (
        image
        + "127.0.0.1 app.internal packages.somewhere.net # mine\n10.0.0.1 db\n1.2.3.4 files.somewhere.net\n::1 www.example.com\n"
    )
    text, left_out = texts.harmless_hosts(agents, image, lambda _: False)
    assert text == image + "127.0.0.1 app.internal\n10.0.0.1 db\n::1 www.example.com\n"
    assert left_out == ["packages.somewhere.net", "files.somewhere.net"]
    author = AuthorText("Let files.somewhere.net be 1.2.3.4.", (), "test.sh")
    assert texts.harmless_hosts(agents, image, author.means_host)[1] == ["packages.somewhere.net"]


@pytest.mark.parametrize(
    ("config", "left_out"),
    [
        ("[user]\n\tname = Mary\n[core]\n\teditor = vim\n[alias]\n\tco = checkout\n[safe]\n\tdirectory = *\n", []),
        ("[core]\n\thooksPath = /srv\n\tautocrlf = false\n", ["core.hookspath"]),
        ("[core]\n\tfsmonitor\n", ["core.fsmonitor"]),
        ("[core] fsmonitor = /srv/m\n", ["core.fsmonitor"]),
        ("[CORE]\nFsMonitor=/srv/m \\\n  more\n[user]\nname=x\n", ["core.fsmonitor"]),
        ('[filter "x"]\n\tsmudge = sh -c evil\n\trequired = true\n', ["filter.x.smudge"]),
        ('[filter "lfs"]\n\tsmudge = git-lfs smudge -- %f\n\tclean = git-lfs clean -- %f\n', []),
        ('[filter "lfs"]\n\tsmudge = git-lfs smudge -- %f; evil\n', ["filter.lfs.smudge"]),
        ('[url "http://evil/"]\n\tinsteadOf = https://\n', ["url.http://evil/.insteadof"]),
        ("[include]\n\tpath = /srv/more\n", ["include.path"]),
        ('[includeIf "gitdir:/"]\n\tpath = /srv/more\n', ["includeif.gitdir:/.path"]),
        ("[diff]\n\texternal = /srv/d\n", ["diff.external"]),
        ("[http]\n\tproxy = x\n", ["http.proxy"]),
        ("\ufeff[core]\nfsmonitor = /srv/m\n", ["core.fsmonitor"]),
        ("[user] [core] fsmonitor = /srv/m\n", ["core.fsmonitor"]),
        ("[core]\n x = a\\\n[user]\n fsmonitor = /srv/m\n", ["core.fsmonitor"]),
        ("[core] # \x0c[user]\n fsmonitor = /srv/m\n", ["core.fsmonitor"]),
        ("[core]\r\n\tfsmonitor = /srv/m", ["core.fsmonitor"]),
        ('[user]\n\tname = "a # b\\" ; c"\n[hook "x"]\n\tcommand = /srv/m # \\\n', ["hook.x.command"]),
        ("[gc]\n\trecentObjectsHook = /srv/m\n", ["gc.recentobjectshook"]),
    ],
)
def test_git_configuration(config: str, left_out: list[str]) -> None:
    text, found = harmless_git_config(config)
    assert found == left_out
    if not left_out:
        assert text == config
    else:
        assert "evil\n" not in text and "/srv" not in text and "insteadOf" not in text
    if "Mary" in config or "name=x" in config:
        assert "name" in text


def test_git_settings_that_the_author_speaks_of_are_kept() -> None:
    def says(*words: str) -> bool:
        return any(word in "set core.hookspath; a clean filter" for word in words)

    config = '[core]\n\thooksPath = .githooks\n\tfsmonitor = /srv/m\n[filter "up"]\n\tclean = tr a-z A-Z\n'
    text, left_out = harmless_git_config(config, says)
    assert left_out == ["core.fsmonitor"]
    assert text == '[core]\n\thooksPath = .githooks\n[filter "up"]\n\tclean = tr a-z A-Z\n'


def test_accounts() -> None:
    image = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/false\n"
    agents = "toor:x:0:0::/srv:/srv/pay\nroot:x:0:0:root:/srv:/srv/pay\nbob:x:1000:1000::/home/bob:/bin/sh\n"
    text, changed = texts.harmless_accounts(agents, image, {"root", "toor"}.__contains__)
    assert changed == ["root", "toor"]
    assert text.splitlines() == [image.splitlines()[0], agents.splitlines()[2]]
    assert texts.harmless_accounts(image, image, {"root"}.__contains__) == (image, [])


def test_accounts_that_were_asked_for() -> None:
    image = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n"
    agents = image.replace("65534:65534", "00:0") + "second:x:0:0::/:/bin/sh\nbob:x:7:7::/:/bin/sh\n"
    text, changed = texts.harmless_accounts(agents, image, lambda name: True)
    assert text == image + "bob:x:7:7::/:/bin/sh\n" and changed == ["nobody", "second"]
    text, changed = texts.harmless_accounts(agents, image, lambda name: name == "root")
    assert text == agents and not changed


def test_shadowing() -> None:
    found = [
        "/root/.local/bin/cat",
        "/usr/local/bin/cat",
        "/usr/bin/cat",
        "/usr/local/bin/new",
        "/usr/bin/late",
        "/x/late",
    ]
    agents = {"/root/.local/bin/cat", "/usr/local/bin/cat", "/usr/local/bin/new", "/x/late"}
    assert shadowing(sorted(agents), found, agents, ordered=True) == {
        "/root/.local/bin/cat": "/usr/bin/cat",
        "/usr/local/bin/cat": "/usr/bin/cat",
    }
    assert shadowing(["/x/late"], found, agents, ordered=False) == {"/x/late": "/usr/bin/late"}


def test_author_text(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text(
        "#!/bin/bash -l\napt-get install -y \\\n  curl git\npip install -q pytest==8 'my_lib[x]>=2'\n"
    )
    (tmp_path / "blob").write_bytes(b"\0" * 100 + b"secretword")
    author = AuthorText("Serve on port 8000.", (tmp_path,), "test.sh")
    assert author.first_line == "#!/bin/bash -l"
    assert author.tests_install("curl") and author.tests_install("git") and not author.tests_install("cur")
    assert {"pytest", "my-lib", "pluggy"} <= author.installs and "curl" not in author.installs
    assert author.tests_use("curl") and not author.tests_use("curlx") and not author.says("secretword")
    assert author.instruction_names("serve") and not author.instruction_names("curl")


def test_what_the_tests_install_and_source(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text(
        'source "$HOME/.local/bin/env"\nif true; then . /opt/My/env; fi\nuv run --with hypo pytest\n'
    )
    (tmp_path / "requirements-dev.txt").write_text("# needed\nMy.Lib==1.0\n-r other.txt\n")
    (tmp_path / "go.py").write_text("run([sys.executable, '-m', 'pip', 'install', '-q', 'grader_kit==2'])\n")
    author = AuthorText("Do it.", (tmp_path,), "test.sh")
    assert author.sourced == {"~/.local/bin/env", "/opt/My/env"} and not author.starts_login_shells
    assert {"hypo", "my-lib", "grader-kit"} <= author.installs
    (tmp_path / "more.sh").write_text("bash -lc 'true'\n")
    assert AuthorText("", (tmp_path,), "test.sh").starts_login_shells


@pytest.mark.parametrize(
    ("test", "port", "expected"),
    [
        ("python app.py &\ncurl localhost:8123\n", 8123, True),
        ("subprocess.Popen(['app', '8123'])\n", 8123, True),
        ("curl localhost:8123\n", 8123, False),
        ("python app.py &\ncurl localhost:81234\n", 8123, False),
        ("app && curl localhost:8123\n", 8123, False),
        ("python app.py &\ncurl localhost:8000\n", 8000, False),
    ],
)
def test_ports_that_the_tests_serve(tmp_path: Path, test: str, port: int, expected: bool) -> None:
    (tmp_path / "test.sh").write_text(test)
    assert AuthorText("Listen on 8000.", (tmp_path,), "test.sh").tests_serve(port) is expected


def test_sockets_that_the_task_is_about(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text("curl --unix-socket /run/app.sock http://x/\n")
    meant = AuthorText("Start PostgreSQL.", (tmp_path,), "test.sh").means_server
    assert meant("/run/app.sock") and meant("/run/x", "postgresql") and not meant("/run/nscd/socket", "nscd")
    (tmp_path / "serve.py").write_text("Popen(['server', '/run/app.sock'])\n")
    assert not AuthorText("Do it.", (tmp_path,), "test.sh").means_server("/run/app.sock"), (
        "the tests serve it themselves"
    )


def test_findings_are_summed_up() -> None:
    findings = [Finding("bytecode", f"/x/{n}", "set-aside", "why") for n in range(100)]
    rows = as_json([*findings, *findings, Finding("setuid", "/y", "disarmed", "other")])
    assert len(rows) == 22 and rows[20] == {
        "code": "bytecode",
        "path": "and 80 more",
        "action": "set-aside",
        "why": "why",
        "count": 80,
    }
