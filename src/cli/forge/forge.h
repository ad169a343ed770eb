/* forge.h - reaches a repository's issues and pull requests through the forge's own program, gh or
 * glab, which holds the login. segue never sees a token, and no agent comes near one.
 *
 *   forge_find(&f, folder, remote, &err)    which program, which remote
 *   forge_read(&f, FORGE_ISSUE, 12, &item, &err)
 *   forge_quote(&item, &out)                as data, for a task
 *   forge_push(&f, branch, to, &err)        then
 *   forge_open(&f, &request, &url, &err)
 *   forge_item_deinit(&item), forge_deinit(&f)
 *
 * Everything here blocks; it is for the command line. What people wrote is data: each line is
 * quoted, invisible characters are made visible, and the length is bounded. */
#ifndef SEGUE_CLI_FORGE_H
#define SEGUE_CLI_FORGE_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

enum forge_kind { FORGE_ISSUE, FORGE_PR };

struct forge {
  char *folder; /* folder of the repository */
  char *remote; /* its name */
  char *url;    /* address to push to */
  bool is_glab; /* otherwise gh */
};

/* Finds the forge. remote NULL: origin, or the only one. */
bool forge_find(struct forge *f, const char *folder, const char *remote,
                struct err *err) MUST_CHECK;
void forge_deinit(struct forge *f);

struct forge_item {
  enum forge_kind kind;
  long number;
  json_t *title, *body, *author, *url; /* texts, or NULL */
  json_t *head;                        /* a pull request's branch */
  json_t *said;                        /* array of {by, text, place?} */
  json_t *red;                         /* array of the names of checks that failed */
};

/* Reads a number from the command line: 12, or #12. */
bool forge_number(const char *text, long *out, struct err *err) MUST_CHECK;
bool forge_read(const struct forge *f, enum forge_kind kind, long number, struct forge_item *item,
                struct err *err) MUST_CHECK;
void forge_item_deinit(struct forge_item *item);
/* Reads where a session's task came from: config.source. */
json_t *forge_source(const struct forge_item *item);
void forge_quote(const struct forge_item *item, struct buf *out);

/* Pushes one branch of ours to a branch of the remote, never by force. Nothing in the repository's
 * configuration is run or decides where it goes. */
bool forge_push(const struct forge *f, const char *branch, const char *to,
                struct err *err) MUST_CHECK;

/* Fetches the commits of a pull request and returns the newest. NULL: err is set. */
char *forge_fetch(const struct forge *f, long number, struct err *err);

struct forge_request {       /* borrowed */
  const char *branch, *base; /* base may be NULL: the forge's default */
  struct str title, body;
  bool draft;
};

/* Returns the address of the open pull request of that branch; NULL with err->code ERR_NONE: there
 * is none. */
char *forge_opened(const struct forge *f, const char *branch, struct err *err);
/* Opens a pull request and returns its address; NULL: err is set. */
char *forge_open(const struct forge *f, const struct forge_request *request, struct err *err);

#endif
