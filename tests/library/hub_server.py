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
        [(name, action)] = re.findall(r"^/api/models/(.+/.+)/(preupload|commit)/main", self.path)
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

    def do_GET(self) -> None:
        pattern = r"^/(?:api/models/)?([^/]+/[^/]+)/(revision|tree|resolve)/([^/?]+)/?([^?]*)"
        match = re.match(pattern, self.path)
        if not match:
            return self._json({"error": "not found"}, 404)
        name, kind, revision, path = match.groups()
        name_at = self._at(name, revision)
        if name_at not in self.repositories:
            code = "RevisionNotFound" if name in self.repositories else "RepoNotFound"
            return self._json({"error": "not found"}, 404, {"X-Error-Code": code})
        files, commit = self.repositories[name_at], self._commit(name_at)
        if kind == "revision":
            siblings = [{"rfilename": path} for path in files]
            return self._json({"id": name, "sha": commit, "siblings": siblings})
        if kind == "resolve":
            tags = {"ETag": f'"{_hash(files[path])}"', "X-Repo-Commit": commit}
            return self._send(files[path], 200, tags)
        listed = [{"path": p, "size": len(file), "oid": _hash(file)} for p, file in files.items()]
        return self._json([{"type": "file", **one} for one in listed])

    def do_HEAD(self) -> None:
        self.do_GET()

    def _at(self, name: str, revision: str) -> str:
        """The key of the files of this branch, tag or commit: a test may put files under name@tag."""
        for tag in (tag for tag in self.repositories if tag.partition("@")[0] == name):
            if revision in ("main", tag.partition("@")[2], self._commit(tag)):
                return tag
        return f"{name}@{revision}"

    def _commit(self, name: str) -> str:
        return _hash("".join(sorted(map(_hash, self.repositories[name].values()))).encode())

    def _json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        typed = {"Content-Type": "application/json", **(headers or {})}
        self._send(json.dumps(value).encode(), status, typed)

    def _send(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, text in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _hash(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
