import json
import urllib.parse
import urllib.request

PORTS = {"gmail": 9001, "slack": 9002, "gcal": 9003, "gdoc": 9004, "gdrive": 9005}


def call(service, path, body=None, method=None, **query):
    """One request; the answer as JSON."""
    url = f"http://localhost:{PORTS[service]}{path}"
    if query:
        url += "?" + urllib.parse.urlencode(query, doseq=True)
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer xoxp-alex"}
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    value = json.loads(text) if text else {}
    if value.get("ok") is False:
        raise SystemExit(f"{path}: {value['error']}")
    return value
