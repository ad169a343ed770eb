#!/usr/bin/env python3
"""What a store of several machines says where something is wrong: servers that are full, read only,
slow or older; rights that are missing; lines changed by hand; hostile bytes; tables of each version."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import shared_daemon_test
from shared_copy_test import made_up
from shared_daemon_test import STOPS, Fleet
from support import WAIT_S, at_once, end_of, expect, main, need_build, needs, sample
import postgres

SERVER = None
SQL = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + "/src/store/postgres/"


def database_of(fleet):
    return fleet.store.rsplit("/", 1)[1]


def rows(fleet):
    return [json.loads(r) for r in fleet.segue("ls", "--json").stdout.splitlines()]


def too_many_connections():
    """It waits, says so, and goes on once there is a place."""
    with postgres.Server(options=["max_connections=6", "superuser_reserved_connections=1"]) as small:
        shared_daemon_test.SERVER = small
        try:
            small.sql("CREATE ROLE usual LOGIN; CREATE ROLE admins SUPERUSER LOGIN")
            url = small.database()
            name = url.rsplit("/", 1)[1]
            with Fleet("30s", store=url) as fleet:
                small.sql("GRANT segue_worker TO usual", name)
                usual = {**fleet.env, "SEGUE_STORE": small.url(name, user="usual")}
                psql = [small.bin + "/psql", "-h", small.dir, "-U", "usual", "-d", name, "-qAt"]
                held = []

                def all_are_taken():
                    """One that came before an earlier connection was gone is refused, and comes again."""
                    p = subprocess.Popen(psql, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, **small.drop)
                    with contextlib.suppress(BrokenPipeError):
                        p.stdin.write(b"SELECT 1;\n")
                    if p.stdout.readline():
                        held.append(p)
                    else:
                        p.wait(WAIT_S)
                    return len(held) == 5

                fleet.until(all_are_taken, "all are taken")
                late = subprocess.Popen([shared_daemon_test.SEGUE, "ls", "--json"], env=usual, cwd=fleet.cwd,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                said = late.stderr.readline()
                expect(b"has no connection left (max_connections): FATAL" in said, said)
                for p in held:
                    p.stdin.close()
                    p.wait(WAIT_S)
                status, _, err = end_of(late)
                expect(status == 0, status, err)
        finally:
            shared_daemon_test.SERVER = SERVER


def refuses_in_its_own_language(state, words):
    """The address of a server that refuses each connection with this state."""
    server = socket.create_server(("127.0.0.1", 0))
    fields = b"".join(kind + text + b"\0" for kind, text in
                      ((b"S", "致命错误".encode()), (b"V", b"FATAL"), (b"C", state), (b"M", words)))

    def refuse():
        with server:
            while True:
                line, _ = server.accept()
                with line, contextlib.suppress(OSError):  # the client may hang up first
                    line.recv(8)  # whether it speaks TLS
                    line.sendall(b"N")
                    line.recv(1024)
                    line.sendall(b"E" + (len(fields) + 5).to_bytes(4, "big") + fields + b"\0")

    threading.Thread(target=refuse, daemon=True).start()
    return f"postgres://u@127.0.0.1:{server.getsockname()[1]}/db"


def refused_in_another_language():
    """It is told at once what stays wrong, and waited for what may pass."""
    with Fleet("30s", store=SERVER.database()) as fleet:
        for state, words in ((b"28P01", "Passwort-Authentifizierung für Benutzer »u« fehlgeschlagen"),
                             (b"3D000", "データベース\"db\"は存在しません"), (b"28000", "не разрешено"), (b"42501", "不允许")):
            done = fleet.segue("ls", "--store", refuses_in_its_own_language(state, words.encode()))
            expect(done.returncode == 2 and words.encode() in done.stderr, done)
            expect(b"does not answer" not in done.stderr, "it waited", done)
        url = refuses_in_its_own_language(b"53300", "zu viele Verbindungen".encode())
        late = subprocess.Popen([shared_daemon_test.SEGUE, "ls", "--store", url], env=fleet.env, cwd=fleet.cwd,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = late.stderr.readline()
        late.kill()
        late.communicate()
        expect(b"has no connection left (max_connections)" in said, said)


def addresses_that_lead_nowhere():
    """Each command says so once, ends with the documented status, and counts nothing."""
    wrong = ("postgres://me@127.0.0.1:1/db?sslmode=bogus", "postgres://", "postgres://me:word@127.0.0.1/db")
    silent = "postgres://me@%2Fnone/db"
    with Fleet("30s") as fleet:
        out = fleet.dir + "/out"
        takes_address = [("verify",), ("verify", "--json"), ("audit",), ("replay",)]
        for url in (*wrong, silent):
            commands = [((*words, url), 2 if words[0] in ("verify", "replay") else None) for words in takes_address]
            commands += [((*words, "--store", url), None) for words in (("store", "export", out), ("store", "export", "last", out), ("store", "import", fleet.dir))]
            if url != silent:
                commands += [((*words, "--store", url), None) for words in (
                    ("ls",), ("show", "last"), ("verify", "last"), ("audit",), ("cancel", "last"), ("resume", "last"), ("rm", "last"), ("heads",), ("inbox",),
                    ("store", "init"), ("store", "status"), ("store", "check"), ("store", "limit", "x", "3"), ("store", "prune", "--older-than", "1d"))]
            started = [(words, status, fleet.start(*words)) for words, status in commands]
            for words, status, going in started:
                got, said, err = end_of(going)
                lines = [line for line in err.splitlines() if not line.endswith(b"trying again")]
                expect(got == (status or (1 if url == silent else 2)), words, got, err)
                expect(said == b"" and len(lines) == 1 and lines[0].startswith(f"segue {words[0]}: ".encode()), words, said, err)


def read_only():
    """A standby, or one that was set so: reading works, the rest waits and says why."""
    with Fleet("30s") as fleet:
        done = fleet.segue("run", fleet.file("stops.yaml", STOPS), "--task", "x", "--cwd", fleet.cwd, "-q")
        expect(done.returncode == 5, done)
        fleet.sql(f"ALTER DATABASE {database_of(fleet)} SET default_transaction_read_only = on")
        for words in (("ls",), ("show", "last"), ("verify", "last"), ("audit",)):
            expect(fleet.segue(*words).returncode == 0, words)
        going = fleet.start("resume", "last", "--max-movements", "3", "-q")
        said = going.stderr.readline()
        expect(b"is read-only, perhaps a standby" in said, said)
        SERVER.sql(f"ALTER DATABASE {database_of(fleet)} RESET default_transaction_read_only")
        status, _, err = end_of(going)
        expect(status == 0, "it goes on once it may write", status, err)


def changed_by_hand():
    """Each kind of change is named, and no worker goes on with such a session."""
    changes = (("UPDATE segue.line SET line = overlay(line placing 'X'::bytea from 40) WHERE seq = 3", b"record 3"),
               ("DELETE FROM segue.line WHERE seq = 2", b"record 2"),
               ("UPDATE segue.line SET line = (SELECT line FROM segue.line WHERE seq = 4) WHERE seq = 5", b"record 5"),
               ("DELETE FROM segue.line WHERE seq = (SELECT max(seq) FROM segue.line)", b"so the end was cut off"),
               ("UPDATE segue.session SET seq = seq + 1", b"so the end was cut off"),
               ("UPDATE segue.session SET hash = decode(repeat('00', 32), 'hex')", b"the store's row has another hash"))
    met = sample.draw("changes that a worker meets", changes, 3)
    for change, named in changes:
        with Fleet("30s") as fleet:
            (sid,) = fleet.submit(fleet.workflow(0.01))
            done = fleet.segue("run", fleet.file("stops.yaml", STOPS), "--task", "x", "--cwd", fleet.cwd, "-q")
            expect(done.returncode == 5, done)
            other = next(r["id"] for r in rows(fleet) if r["id"] != sid)
            only = change + (" AND " if "WHERE" in change else " WHERE ") + (
                f"session = '{other}'" if "segue.line" in change.split("SET")[0] else f"id = '{other}'")
            only = only.replace("FROM segue.line)", f"FROM segue.line WHERE session = '{other}')").replace(
                "FROM segue.line WHERE seq = 4)", f"FROM segue.line WHERE seq = 4 AND session = '{other}')")
            fleet.sql(only)
            seen = fleet.segue("verify", other)
            checked = fleet.segue("store", "check")
            expect(checked.returncode == 1 and other.encode() in checked.stdout, change, checked)
            expect(seen.returncode == 1 and named in seen.stdout + seen.stderr, change, seen)
            if (change, named) not in met:
                continue
            before = fleet.sql(f"SELECT count(*) FROM segue.line WHERE session = '{other}'")
            for words in (("resume", other, "--max-movements", "3", "-q"), ("resume", other, "--max-movements", "3", "--daemon")):
                done = fleet.segue(*words)
                expect(done.returncode == 1 and done.stderr, change, words, done)
            fleet.sql(f"UPDATE segue.session SET state = 'ready', rest = 'ready', ready_at = clock_timestamp() WHERE id = '{other}'")
            fleet.serve()
            fleet.until(lambda f=fleet: f.count("state = 'ended'") == 1, "the sound one ends")
            fleet.until(lambda f=fleet, o=other: o.encode() in f.said(0), f"the other one is refused: {change}")
            expect(fleet.sql(f"SELECT count(*) FROM segue.line WHERE session = '{other}'") == before, change, "something was written")


def missing_rights():
    """The message names the grant."""
    with Fleet("30s") as fleet:
        name = database_of(fleet)
        fleet.sql("DO $$ BEGIN CREATE ROLE nothing LOGIN; CREATE ROLE looks LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; "
                  "GRANT segue_reader TO looks")
        flow = fleet.workflow(0.01)
        for user, words in (("nothing", ("ls",)), ("nothing", ("serve", "--socket", fleet.dir + "/x.sock")),
                            ("looks", ("submit", flow, "--task", "x", "--cwd", fleet.cwd)), ("looks", ("cancel", "last")),
                            ("looks", ("serve", "--socket", fleet.dir + "/x.sock")), ("looks", ("store", "limit", "script", "3"))):
            if words[0] == "cancel":
                fleet.submit(flow)
            done = fleet.segue(*words, "--store", SERVER.url(name, user=user))
            expect(done.returncode in (1, 2) and b"GRANT segue_worker" in done.stderr, user, words, done)
        for words in (("ls",), ("show", "last"), ("audit",), ("store", "status"), ("store", "check")):
            done = fleet.segue(*words, "--store", SERVER.url(name, user="looks"))
            expect(done.returncode == 0, "a reader", words, done)
        done = fleet.segue("store", "init", "--store", SERVER.url(name, user="looks"))
        expect(done.returncode == 2 and b"init and prune need the owner's login" in done.stderr, done)
        done = fleet.segue("store", "prune", "--older-than", "0s", "--stopped", "--store", SERVER.url(name, user="looks"))
        expect(done.returncode == 2 and done.stdout == b"" and b"need the owner's login" in done.stderr, done)


def a_server_that_trickles():
    """One that says a byte now and then, and one that says nothing: an end within the bound, told."""
    def serve(listener, byte):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            if byte:
                threading.Thread(target=drip, args=(connection,), daemon=True).start()

    def drip(connection):
        try:
            for _ in range(600):
                connection.sendall(b"R")
                if ends.wait(0.3):
                    return
        except OSError:
            return

    for byte in (False, True):
        held, ends = [], threading.Event()
        with Fleet("30s") as fleet:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(fleet.dir + "/.s.PGSQL.5432")
            listener.listen(16)
            threading.Thread(target=serve, args=(listener, byte), daemon=True).start()
            began = time.monotonic()
            done = fleet.segue("ls", "--store", f"postgres://me@{fleet.dir.replace('/', '%2F')}/db")
            expect(done.returncode in (1, 2) and b"the store " in done.stderr, byte, done)
            at_once(began, 45, "it took")
            ends.set()
            listener.close()
            for connection in held:
                connection.close()


def removed_while_it_is_read():
    """A session that is gone from one look of check or verify to the next, at each of them, is no error."""
    with Fleet("30s") as fleet:
        sid = "01990000-0000-7000-8000-000000000001"
        done = fleet.segue("store", "import", fleet.file(f"{sid}.ndjson", made_up(sid, [])))
        expect(done.returncode == 0, done)
        fleet.sql("DO $$ BEGIN CREATE ROLE checks LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT segue_worker TO checks; "
                  "CREATE SEQUENCE segue.looks; GRANT ALL ON segue.looks TO checks; ALTER TABLE segue.session ENABLE ROW LEVEL SECURITY")
        url = SERVER.url(database_of(fleet), user="checks")
        for words, says in ((("store", "check"), b" 0 with a problem"), (("verify", url), b" log")):
            for last in range(7):
                fleet.sql("ALTER SEQUENCE segue.looks RESTART; DROP POLICY IF EXISTS seen ON segue.session; "
                          f"CREATE POLICY seen ON segue.session USING (nextval('segue.looks') <= {last})")
                done = fleet.segue(*words, "--store", url)
                seen = int(fleet.sql("SELECT last_value FROM segue.looks"))
                bad = words[0] == "verify" and seen <= last  # a made-up log, read to its end
                expect(done.returncode == (1 if bad else 0) and done.stderr == b"" and says in done.stdout, words, last, done)
            expect(seen < 7, "looks", words, seen)
        fleet.sql("ALTER TABLE segue.session DISABLE ROW LEVEL SECURITY; DELETE FROM segue.session")
        large = fleet.file("large.yaml", "name: large\nprovider: script\nmax_movements: 8\nmovements:\n  - name: a\n"
                           "    command: [sh, -c, 'head -c 50000 /dev/zero | tr \"\\0\" x']\n    rules: [{condition: when(exit == 0), next: a}]\n")
        done = fleet.segue("run", large, "--task", "x", "--cwd", fleet.cwd, "-q")
        expect(done.returncode == 5 and int(fleet.sql("SELECT max(bytes) FROM segue.session")) > 300000, "more than is read at once", done)
        fleet.sql("DELETE FROM segue.chain")
        # The function that reads the bytes finds it at the first call only.
        fleet.sql("ALTER SEQUENCE segue.looks RESTART; ALTER FUNCTION segue.read(uuid, bigint, int) RENAME TO read_whole; "
                  "CREATE FUNCTION segue.read(p_id uuid, p_at bigint, p_max int) RETURNS bytea LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN "
                  "IF p_at > 0 THEN DELETE FROM segue.session WHERE id = p_id; END IF; RETURN segue.read_whole(p_id, p_at, p_max); END $$; "
                  "GRANT EXECUTE ON FUNCTION segue.read(uuid, bigint, int) TO segue_worker")
        done = fleet.segue("verify", fleet.store)
        expect(done.returncode == 0 and done.stdout == b"0 logs\n" and done.stderr == b"", done)
        expect(fleet.count("true") == 0, "it is gone")


def begins_elsewhere():
    """A record whose row says another place in the log than it has: found, named and mended; the record is
    whole. A damaged one is told before its place, and nothing is mended then."""
    with Fleet("30s") as fleet:
        sid = fleet.submit(fleet.file("stops.yaml", STOPS))[0]
        expect(fleet.segue("resume", sid, "-q").returncode == 5, "it stops")
        last = int(fleet.sql("SELECT max(seq) FROM segue.line"))
        for seq, by in ((1, 1), (2, -1), (5, 1), (last, 1), (3, 10 ** 9), (4, -10 ** 9)):
            before = fleet.sql(f"SELECT at FROM segue.line WHERE seq = {seq}")
            fleet.sql(f"UPDATE segue.line SET at = at + {by} WHERE seq = {seq}")
            for words, status, more in ((("store", "check"), 1, b""), (("store", "check", "--mend"), 0, b": mended"), (("store", "check"), 0, None)):
                done = fleet.segue(*words)
                told = f"record {seq} begins at byte {before} of its log, its row says at {int(before) + by}".encode()
                expect(done.returncode == status, seq, by, done)
                expect(more is None or told + more + b"\n" in done.stdout, seq, by, done)
        expect(fleet.segue("verify", sid).returncode == 0, "verify")
        fleet.sql("UPDATE segue.line SET at = at + 1 WHERE seq = 3; UPDATE segue.line SET line = overlay(line placing 'X'::bytea from 40) WHERE seq = 5")
        done = fleet.segue("store", "check", "--mend")
        expect(done.returncode == 1 and b"record 5 is damaged" in done.stdout and b"mended" not in done.stdout, done)
        fleet.sql("DELETE FROM segue.line WHERE seq = 2")
        done = fleet.segue("store", "check", "--mend")
        expect(done.returncode == 1 and b"mended" not in done.stdout, "after a gap nothing has a place", done)


def two_with_one_name():
    """Two daemons of one machine need a socket each; their ids differ, whatever they are called."""
    with Fleet("30s") as fleet:
        fleet.serve("--label", "same")
        again = fleet.segue("serve", "--socket", fleet.dir + "/run0/s.sock", "--logs", fleet.dir + "/logs0")
        expect(again.returncode != 0 and again.stderr, again)
        fleet.sql("UPDATE segue.worker SET name = 'same'")
        fleet.serve("--label", "same")
        fleet.sql("UPDATE segue.worker SET name = 'same'")
        ids = fleet.submit(fleet.workflow(0.05), 6)
        fleet.all_complete(ids)
        expect(len(fleet.starts()) == len(set(fleet.starts())) == 18, "one was run twice")


def hostile_bytes():
    """Notifications, labels, names of workers and applications, requests: whatever stands there."""
    with Fleet("30s") as fleet:
        fleet.serve()
        (sid,) = fleet.submit(fleet.workflow(0.5))
        for text in ("x" * 7900, "ask\n\x1b[2J", "ready; DROP TABLE segue.line", "'; --", "provider\u0007" * 9, "", "\u202e"):
            fleet.sql("SELECT pg_notify('segue', $t$" + text + "$t$)")
        long = "L" * 900 + "\\u001b[31m"
        fleet.sql("INSERT INTO segue.worker (id, name, labels, program, lease_until) VALUES (gen_random_uuid(), "
                  "E'\\x1b]0;evil\\x07" + long + "', ARRAY[E'a\"b\\\\c', E'{x,y}', E'\\x1b[2J'], 'p', clock_timestamp() + interval '1 hour')")
        odd = subprocess.run([SERVER.bin + "/psql", "-h", SERVER.dir, "-U", "postgres", "-d", database_of(fleet), "-c", "SELECT 1"],
                             env={**os.environ, "PGAPPNAME": "segue '; DROP TABLE segue.line; --"}, capture_output=True,
                             cwd=SERVER.dir, check=False, **SERVER.drop)
        expect(odd.returncode == 0, odd)
        fleet.sql(f"UPDATE segue.session SET asked = 'dance' WHERE id = '{sid}'")
        fleet.sql(f"UPDATE segue.session SET why = E'\\x1b[2Jno' WHERE id = '{sid}'")
        for words in (("store", "status"), ("ls",), ("show", sid)):
            done = fleet.segue(*words)
            expect(done.returncode == 0 and b"\x1b" not in done.stdout and b"\x07" not in done.stdout, words, done)
        fleet.until(lambda: fleet.count("state = 'ended'") == 1, "it ends all the same")
        expect(fleet.segue("verify", sid).returncode == 0, "verify")
        for label in ("x" * 1024, "a,b", "a b", "\x1b[2J", "", b"\xff\xfe"):
            done = fleet.segue("serve", "--socket", fleet.dir + "/x.sock", "--label", label)
            expect(done.returncode == 2 and done.stderr and b"\x1b" not in done.stderr, label, done)
            done = fleet.segue("resume", sid, "--label", label)
            expect(done.returncode == 2 and b"\x1b" not in done.stderr, label, done)
        done = fleet.segue("store", "limit", b"\xff", "3")
        expect(done.returncode == 2 and b"UTF-8" in done.stderr, done)
        done = fleet.segue("store", "prune", "--older-than", "-1d")
        expect(done.returncode == 2 and b"--older-than -1d: " in done.stderr and b"--since" not in done.stderr, done)


def certificates():
    """A server that cannot prove who it is, and files that are named and not there."""
    needs("openssl")
    with postgres.Server() as tls, Fleet("30s") as fleet:
        for name in ("server", "other"):
            done = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                                   "-keyout", f"{tls.dir}/{name}.key", "-out", f"{tls.dir}/{name}.crt"], capture_output=True, check=False, **tls.drop)
            expect(done.returncode == 0, done)
        shutil.copy(tls.dir + "/server.crt", fleet.dir)
        shutil.copy(tls.dir + "/other.crt", fleet.dir)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        tls.stop()
        tls.settings = [s for s in tls.settings if not s.startswith("listen_addresses")] + [
            "listen_addresses=127.0.0.1", f"port={port}", "ssl=on", f"ssl_cert_file={tls.dir}/server.crt", f"ssl_key_file={tls.dir}/server.key"]
        tls.start()
        url = f"postgres://postgres@localhost:{port}/postgres?sslmode=verify-full&sslrootcert="
        good = fleet.segue("store", "init", "--store", url + fleet.dir + "/server.crt")
        expect(good.returncode == 0, good)
        # Where nobody listens at the first address, as at ::1 for localhost, what the last one said is the reason.
        for where in (url, url.replace("localhost", f"127.0.0.2:{port},localhost")):
            for file, says in (("/other.crt", b"sslrootcert=FILE"), ("/none.crt", b"none.crt")):
                done = fleet.segue("ls", "--store", where + fleet.dir + file)
                expect(done.returncode == 2 and says in done.stderr and b"refused" not in done.stderr, file, done)
        done = fleet.segue("ls", "--store", f"postgres://me@localhost:{port}/db?sslmode=no-such")
        expect(done.returncode == 2 and b"sslmode" in done.stderr, done)


def each_version_is_brought_up_to_date():
    """The tables as each version made them, with a session of that time in them."""
    files = ["schema.sql"] + [f"upgrade_{n}.sql" for n in range(2, 14)]
    for version in sample.draw("versions of the tables", range(1, len(files)), 3):
        with Fleet("30s") as full, Fleet("30s", store=SERVER.database(), init=False) as fleet:
            ids = full.submit(full.workflow(0.01), 2)
            for name in files[:version]:
                with open(SQL + name, encoding="utf-8") as f:
                    fleet.sql(f.read())
            out = fleet.dir + "/out"
            expect(full.segue("store", "export", out, "--move").returncode == 0, "export")
            for name in sorted(os.listdir(out)):
                if not name.endswith(".ndjson"):
                    continue
                with open(f"{out}/{name}", "rb") as f:
                    line = f.read().rstrip(b"\n")
                sid, last = name[:-7], json.loads(line)
                needs = full.sql(f"SELECT needs FROM segue.session WHERE id = '{sid}'")
                fleet.sql(f"INSERT INTO segue.session (id, state, rest, seq, bytes, hash, needs) VALUES ('{sid}', 'ready', 'ready', 1, "
                          f"{len(line) + 1}, decode('{last['hash']}', 'hex'), '{needs}'); "
                          f"INSERT INTO segue.line VALUES ('{sid}', 1, 0, decode('{line.hex()}', 'hex'))")
            old = fleet.segue("ls")
            expect(old.returncode == 2 and b"segue store init" in old.stderr, version, old)
            done = fleet.segue("store", "init")
            expect(done.returncode == 0 and f"from version {version} to 13".encode() in done.stdout, version, done)
            fleet.serve()
            fleet.until(lambda f=fleet: f.count("state = 'ended'") == 2, "they end")
            expect(fleet.segue("verify", *ids).returncode == 0 and fleet.segue("store", "check").returncode == 0, version)


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        shared_daemon_test.SERVER = SERVER
        status = main([too_many_connections, refused_in_another_language, addresses_that_lead_nowhere, read_only, changed_by_hand, missing_rights, a_server_that_trickles, removed_while_it_is_read, begins_elsewhere,
                       two_with_one_name, hostile_bytes, certificates, each_version_is_brought_up_to_date])
    sys.exit(status)
