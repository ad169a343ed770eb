#!/bin/sh
# An include may point to the same room or one higher in this list; core, judge and structured never
# see os; uv_* and curl_* names appear only where the plan says; Linux's own calls stand in os, shim
# and http, clocks are read in os and shim only; only store knows what a log is made of (its file's
# name, its back ends); only git starts git; json_dumps is not called. Prints every offence, exits 1.
set -eu
cd "$(dirname "$0")/.."
awk '
BEGIN {
  n = split("base format json schema expr extract render adapt gbnf structured judge core os git evidence http workflow" \
            " provider store audit view web host daemon cli", order, " ")
  for (i = 1; i <= n; i++) rank[order[i]] = i
  split("os git http provider store host daemon", loop_rooms, " ")
  for (i in loop_rooms) may_loop[loop_rooms[i]] = 1
  linux = "(^|[^a-zA-Z0-9_])(epoll_c|epoll_w|signalfd|pidfd_|prctl|inotify_|memfd_|openat2|RESOLVE_|O_PATH|fallocate" \
          "|F_OFD_|renameat2|RENAME_|getrandom|malloc_trim|mallopt|madvise|SO_PEERCRED|syscall\\(|timerfd_" \
          "|eventfd|dl_iterate|cgroup|landlock|seccomp|PR_SET_)|\"/proc|\"/sys/|<linux/"
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
  else if (target == "os" && rank[room] <= rank["core"]) offence(room " must not see os")
}
/(^|[^a-zA-Z0-9_])(uv|curl)_[a-z]+/ && !(room in may_loop) && room != "shim" && !/^ ?\*/ && !/\/\*/ {
  offence("uv_ and curl_ names belong to os, git, http, provider, store, host, daemon")
}
$0 ~ linux && room != "os" && room != "shim" && room != "http" && !/^ ?\*/ && !/\/\*/ {
  offence("what only Linux has belongs to os (fs.h, peer.h, random.h, memory.h), shim, http")
}
/clock_gettime|gettimeofday|uv_hrtime|[^a-z_]time\(NULL\)/ && room != "os" && room != "shim" { offence("clocks are read in os/clock.h") }
/(^|[^a-z_])json_dumps\(/ && !/^ ?\*/ { offence("json_dumps gives memory that free() cannot take: json_dump_text, json_write or json_dumpb") }
room != "store" && /^#include "store\/(backend|sidecar)\.h"/ { offence("only store sees its back ends") }
room != "store" && /"[^" ]*\.ndjson[^" ]*"/ { offence("only store knows that a log is a file: use a store_ref") }
room != "git" && /([{=]|WORDS\([^"]*) *"(\/[^" ]*\/)?git"/ && !/^ ?\*/ {
  offence("git is started in git/git.h only, where the repository does not say what it does")
}
END { exit bad }
' $(find src -name '*.c' -o -name '*.h' | sort)
