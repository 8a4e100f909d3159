"""Serves ClickHouse's HTTP interface over chDB, as far as a loader needs it: clickhouse.py PORT. A statement comes in the
parameter query, and the rows that it reads in the body; chDB reads them from a file."""

import re
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse

from chdb import session

db = session.Session(tempfile.mkdtemp())


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        query = parse_qs(urlparse(self.path).query)["query"][0]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) if "chunked" not in self.headers.get(
            "Transfer-Encoding", "") else self.chunks()
        try:
            with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
                if body:
                    file.write(body)
                    file.flush()
                    query = re.sub(r"FROM input\((.*)\) FORMAT Parquet$", lambda m: f"FROM file('{file.name}', Parquet, {m[1]})", query,
                                   flags=re.S)
                answer = db.query(query, "TabSeparated")
            status, text = 200, bytes(str(answer), "utf-8")
        except Exception as error:  # every failure is an answer
            status, text = 500, bytes(str(error), "utf-8")
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def chunks(self):
        out = b""
        while size := int(self.rfile.readline(), 16):
            out += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return out

    def log_message(self, *_):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
