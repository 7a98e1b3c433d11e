from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = answer(urlsplit(self.path))
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def answer(url):
    if url.path == "/health":
        return 200, "ok"
    if url.path != "/add":
        return 404, "not found"
    query = parse_qs(url.query)
    try:
        return 200, str(int(query["a"][0]) + int(query["b"][0]))
    except (KeyError, ValueError):
        return 400, "a and b must be whole numbers"


ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
