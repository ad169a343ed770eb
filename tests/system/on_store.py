"""Runs cases of other system tests on a shared store instead of a folder of logs.

shared_suite_test.py starts a private server and names its folder in SEGUE_TEST_SERVER. Then each Box has a
database of its own as its store: `--logs` of the box is left out of commands, and what a case reads as log
files is copied out of the database, byte for byte, whenever it asks for their paths.
"""
import os
import re
import urllib.parse

SERVER = os.environ.get("SEGUE_TEST_SERVER")
if SERVER:
    import postgres  # support.py, which imports this, says where it is
count = 0
boxes = {}  # by their folder of logs


def sql(database, text):
    return postgres.query(SERVER, text, database).splitlines()


def join(box):
    """Gives the box a fresh store."""
    global count
    count += 1
    box.database = f"b{os.getpid()}_{count}"
    sql("postgres", f"CREATE DATABASE {box.database} TEMPLATE ready")
    boxes[box.logs] = box
    box.env["SEGUE_STORE"] = f"postgres://postgres@{urllib.parse.quote(SERVER, safe='')}/{box.database}"


def leave(box):
    boxes.pop(box.logs, None)
    sql("postgres", f"DROP DATABASE IF EXISTS {box.database} WITH (FORCE)")


def words(box, given):
    """The command's words without the box's folder of logs, and ids for its files."""
    left, rest = [], list(given)
    while rest:
        word = rest.pop(0)
        if word in ("--logs", "-l") and rest and rest[0] == box.logs:
            rest.pop(0)
        else:
            left.append(re.sub(r"^" + re.escape(box.logs) + r"/([-0-9a-f]{36})\.ndjson$", r"\1", word))
    return left


def refresh(path):
    """The file of a log, as it is in the store now."""
    box = boxes.get(os.path.dirname(path))
    if box is not None:
        copy_logs(box)


def copy_pieces(box, path, query):
    """Rows of a name and a piece, in order: a file for each name."""
    files = {}
    for row in sql(box.database, query):
        name, piece = row.split("|")
        files.setdefault(name, []).append(bytes.fromhex(piece))
    for name, pieces in files.items():
        with open(f"{box.logs}/{path.format(name)}", "wb") as f:
            f.write(b"".join(pieces))


def copy_logs(box):
    """Writes the store's lines and blobs as the files that a folder would hold."""
    os.makedirs(box.logs + "/blobs", exist_ok=True)
    with postgres.one_connection():
        copy_pieces(box, "{}.ndjson", "SELECT session, encode(line || '\\x0a', 'hex') FROM segue.line ORDER BY session, seq")
        copy_pieces(box, "blobs/{}", "SELECT encode(sha256, 'hex'), encode(data, 'hex') FROM segue.blob_part ORDER BY sha256, part")
