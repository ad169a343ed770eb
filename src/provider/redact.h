/* redact.h - secrets never enter: their values are replaced in what a provider says, before the
 * bytes become an event, so that memory and log never differ.
 *
 * It finds the value itself, the value with any of its bytes written as in a URL (%2F) or in a JSON
 * string (\/, \u002f), the value inside a base64 text at any of its three offsets (both alphabets),
 * and its bytes in hex as xxd -p, od -tx1 and the like write them: with white space, line ends
 * (also as \n in a JSON string) and, in hex, commas, colons, 0x and offsets between. A value under
 * LIMIT_SECRET_BYTES is too common to be treated as one. Each occurrence becomes «secret:NAME».
 *
 *   secrets = secrets_new(); secrets_add(...) ...
 *   a whole text:  secrets_hide(secrets, &text)
 *   a stream:      redactor_init(&r, secrets); redactor_push(&r, piece, &out) ...;
 *                  redactor_flush(&r, &out); redactor_deinit(&r)
 *   secrets_free(secrets)      wipes what it holds */
#ifndef SEGUE_PROVIDER_REDACT_H
#define SEGUE_PROVIDER_REDACT_H

#include "base/buf.h"

struct secrets;

struct secrets *secrets_new(void);
void secrets_free(struct secrets *secrets); /* NULL is fine */
void secrets_add(struct secrets *secrets, const char *name, struct str value);
/* The values of environment variables; names: NULL-ended, or NULL. */
void secrets_add_env(struct secrets *secrets, const char *const *names);
bool secrets_are_empty(const struct secrets *secrets); /* NULL is empty */

/* Returns how many places were replaced. Call it before a text is cut: part of a value is not
 * found. */
size_t secrets_hide(const struct secrets *secrets, struct buf *text);
/* The name of the first secret in a text, which is left unchanged; NULL: there is none. */
const char *secrets_first(const struct secrets *secrets, struct str text);

/* A stream holds back what may be the beginning of a value until more comes. */
struct redactor {
  const struct secrets *secrets; /* borrowed */
  struct buf held;
};
void redactor_init(struct redactor *r, const struct secrets *secrets);
void redactor_push(struct redactor *r, struct str piece, struct buf *out); /* appends to out */
void redactor_flush(struct redactor *r, struct buf *out);
void redactor_deinit(struct redactor *r);

#endif
