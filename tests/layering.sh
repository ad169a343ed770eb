#!/bin/sh
# An include may point to the same room or one higher in this list; core, judge and structured never
# see os; uv_* and curl_* names appear only where the plan says; json_dumps
# is not called. Prints every offence, exits 1.
set -eu
cd "$(dirname "$0")/.."
awk '
BEGIN {
  n = split("base format structured judge core os workflow provider store host daemon audit cli", order, " ")
  for (i = 1; i <= n; i++) rank[order[i]] = i
  split("os provider store host daemon", loop_rooms, " ")
  for (i in loop_rooms) may_loop[loop_rooms[i]] = 1
}
function offence(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad = 1 }
FNR == 1 { split(FILENAME, part, "/"); room = part[2] }
/^#include "/ {
  path = $2; gsub(/"/, "", path)
  split(path, p, "/")
  target = p[1]
  if (room == "shim") { if (target != "base" && target != "shim") offence("the shim sees base only") }
  else if (target == "shim") { if (room != "os") offence("only os speaks with the shim") }
  else if (!(target in rank)) { if (index(path, "/") > 0) offence("unknown room " target) }
  else if (!(room in rank)) offence("unknown room " room)
  else if (rank[target] > rank[room]) offence(room " must not see " target)
  else if (target == "os" && (room == "core" || room == "judge" || room == "structured")) offence(room " must not see os")
}
/(^|[^a-zA-Z0-9_])(uv|curl)_[a-z]+/ && !(room in may_loop) && room != "shim" && !/^ ?\*/ && !/\/\*/ {
  offence("uv_ and curl_ names belong to os, provider, store, host, daemon")
}
/(^|[^a-z_])json_dumps\(/ && !/^ ?\*/ { offence("json_dumps gives memory that free() cannot take: json_dump_text, json_write or json_dumpb") }
END { exit bad }
' $(find src -name '*.c' -o -name '*.h' | sort)
