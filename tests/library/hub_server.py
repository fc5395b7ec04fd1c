"""A stand-in of the model hub: the part of its API that huggingface_hub calls to push and pull."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.http_server import serving

Repositories = dict[str, dict[str, bytes]]


@contextmanager
def hub(token: str) -> Iterator[tuple[str, Repositories]]:
    """The server's address and the files of its repositories. Writing needs the token."""
    repositories: Repositories = {}
    answers = type("Answers", (_Answers,), {"repositories": repositories, "token": token})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), answers)) as url:
        yield url, repositories


class _Answers(BaseHTTPRequestHandler):
    repositories: Repositories
    token: str

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {self.token}":
            return self._json({"error": "Invalid credentials"}, 401)
        address = f"http://{self.headers['Host']}"
        if self.path == "/api/repos/create":
            fields = json.loads(body)
            name = "/".join(filter(None, [fields.get("organization"), fields["name"]]))
            self.repositories.setdefault(name, {})
            return self._json({"url": f"{address}/{name}"})
        if self.path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        name, action = re.findall(r"^/api/models/([^/]+/[^/]+)/(preupload|commit)/main", self.path)[
            0
        ]
        if action == "preupload":
            files = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": f, "uploadMode": "regular", "shouldIgnore": False} for f in files]
            return self._json({"files": modes})
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.repositories[name][line["value"]["path"]] = content
        commit = self._commit(name)
        return self._json({"commitUrl": f"{address}/{name}/commit/{commit}", "commitOid": commit})

    def do_HEAD(self) -> None:
        self._file(head=True)

    def do_GET(self) -> None:
        match = re.match(r"^/api/models/([^/]+/[^/]+)/(revision|tree)/", self.path)
        if not match:
            return self._file(head=False)
        name, kind = match.groups()
        if name not in self.repositories:
            return self._json(
                {"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"}
            )
        name = self._at(
            name, self.path.partition(f"/{kind}/")[2].partition("?")[0].partition("/")[0]
        )
        if name not in self.repositories:
            error = {"error": "Invalid rev id"}
            return self._json(error, 404, {"X-Error-Code": "RevisionNotFound"})
        files = self.repositories[name]
        if kind == "revision":
            siblings = [{"rfilename": path} for path in files]
            return self._json({"id": name, "sha": self._commit(name), "siblings": siblings})
        return self._json(
            [
                {"type": "file", "path": path, "size": len(content), "oid": _hash(content)}
                for path, content in files.items()
            ]
        )

    def _file(self, *, head: bool) -> None:
        match = re.match(r"^/([^/]+/[^/]+)/resolve/([^/]+)/(.*)$", self.path)
        if not match:
            return self._json({"error": "Not found"}, 404)
        name, revision, path = match.groups()
        name = self._at(name, revision)
        content = self.repositories[name][path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{_hash(content)}"')
        self.send_header("X-Repo-Commit", self._commit(name))
        self.end_headers()
        if not head:
            self.wfile.write(content)
        return None

    def _at(self, name: str, revision: str) -> str:
        """The key of the files of this branch, tag or commit: a test may put files under name@tag."""
        for tag in (name, *(tag for tag in self.repositories if tag.startswith(f"{name}@"))):
            if revision in ("main", tag.partition("@")[2], self._commit(tag)):
                return tag
        return f"{name}@{revision}"

    def _commit(self, name: str) -> str:
        return _hash(b"".join(sorted(map(_hash_bytes, self.repositories[name].values()))))

    def _json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        for key, text in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(key, text)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _hash_bytes(content: bytes) -> bytes:
    return hashlib.sha1(content, usedforsecurity=False).digest()


def _hash(content: bytes) -> str:
    return _hash_bytes(content).hex()
