"""What a hostile agent can find of the provider's key in its box: nothing."""

from __future__ import annotations

PROVIDER_KEY = "sk-provider-key-that-must-stay-outside"

# The agent is root in its box and looks everywhere: variables, command lines and open files of every process, all files.
LOOK = r"""
for p in /proc/[0-9]*; do
  tr '\0' '\n' < $p/environ; tr '\0' ' ' < $p/cmdline; echo; ls -l $p/fd
done > /logs/artifacts/processes.txt 2>/dev/null
grep -rlF "$NEEDLE" /app /root /home /tmp /var/tmp /etc /logs /run /opt/benchflow /dev/shm > /tmp/files 2>/dev/null
cp /tmp/files /logs/artifacts/files.txt
"""


def test_the_providers_key_is_nowhere_in_the_box_and_in_nothing_that_is_written(
    bench, examples, somebodys, local_model, name, result_of
):
    # The needle is put together in the box, so that the search does not find itself.
    needle = "NEEDLE=$(printf '%s%s' sk-provider-key- that-must-stay)"
    command = f"echo 'Hello, Ada!' > /app/hello.txt; {needle}; export NEEDLE; {LOOK}"
    local_model.script("look", [{"text": "I look.", "tools": [{"name": "bash", "args": {"command": command}}]}])
    args = ["-t", examples / "hello-file", "-a", "somebodys", "-e", name("local"), "-m", "openai/some-model"]
    done = bench("eval", "create", *args, "--prompt", "[[fake:look]]", "--record", more=somebodys)
    assert done.code == 0, done.err
    assert [seen.credential for seen in local_model.log] == [PROVIDER_KEY], "it was used, outside"
    folder = result_of()["dir"]
    artifacts = folder / "artifacts/logs/artifacts"
    found = (artifacts / "processes.txt").read_text()
    assert "MODEL_KEY=" in found and "agent.py" in found, "the search saw the agent's own process"
    assert PROVIDER_KEY not in found and "OPENAI_API_KEY" not in found
    assert (artifacts / "files.txt").read_text() == ""
    everything = b"".join(p.read_bytes() for p in folder.parent.rglob("*") if p.is_file())
    assert PROVIDER_KEY.encode() not in everything
    assert b"MODEL_KEY=[redacted]" in everything and b"sk-bf-" not in everything
