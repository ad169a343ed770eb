/* resolve_id.h - finds the log that a word on the command line means, and shortens paths for
 * display. */
#ifndef SEGUE_CLI_RESOLVE_ID_H
#define SEGUE_CLI_RESOLVE_ID_H

#include "cli/cli.h"
#include "store/store.h"

/* Finds a log. The word is a path, an id, a unique prefix of one, or `last`. logs: --logs or NULL.
 * `last` without a folder is the session of this project that was started last, wherever its log
 * is. If the log folder does not have it, the daemon is asked; with socket (--socket or NULL) only
 * that daemon. */
bool resolve_id_session(const char *word, const char *logs, const char *socket,
                        struct store_ref *ref, struct err *err) MUST_CHECK;

/* Says on stderr which session the command acts on (not with --json or --quiet). If it is another
 * project's than where one stands, asks on a terminal whether to, unless --yes is given; without a
 * terminal it goes on. False: a person said no. */
bool resolve_id_sure(const struct cli_args *args, const struct store_ref *ref,
                     struct err *err) MUST_CHECK;

/* Takes the folder of logs, or the store, that `logs` names (--logs or NULL). It need not be
 * there. */
bool resolve_id_store(const char *logs, struct store *store, struct err *err) MUST_CHECK;

/* Returns whether the word is a folder, or the address of a shared store; otherwise it means one
 * log. */
bool resolve_id_is_store(const char *word);

/* Receives each log that a word means: one, or those of a folder or a whole store. `store`, unless
 * NULL, is told before where they are; false: err is set, and later words are skipped. */
struct resolve_id_each {
  void (*log)(void *ctx, const struct store_ref *ref);
  void *ctx;
  bool (*store)(void *ctx, const struct store *store, struct err *err);
};
bool resolve_id_take(const char *word, const char *logs, const struct resolve_id_each *each,
                     struct err *err) MUST_CHECK;
/* Takes each word in order; without words it takes the log folder, which need not exist unless
 * `logs` names it. */
bool resolve_id_take_all(char *const *words, size_t count, const char *logs,
                         const struct resolve_id_each *each, struct err *err) MUST_CHECK;

/* Reads --since as filter_since does; NULL changes nothing. */
bool resolve_id_since(const char *text, int64_t *since_ms, struct err *err) MUST_CHECK;

/* Returns the word by which a command finds this log: the beginning of its id, as `ls` prints it,
 * if it is in the usual folder; otherwise resolve_id_shown. Points into `path` or `id`. */
const char *resolve_id_word_for(const char *path, char id[STORE_ID_BYTES]);

/* Shortens a path below the current folder by that folder's name. Points into `path`. */
const char *resolve_id_shown(const char *path);

#endif
