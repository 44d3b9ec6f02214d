"""An HTTP server in a thread, for commands that a test runs in its own."""

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def answering(answer: Callable[[str, str | None], tuple[int, bytes]]) -> Iterator[int]:
    """Answer each GET on a free port by its path and its Authorization header; yield the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self.path, self.headers["Authorization"])
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serve = functools.partial(server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
