/* interning.h - remembers where each text of a session was first logged, so that a text is stored
 * once.
 *
 * A place is the sequence number of a record and a JSON Pointer in it, written "12#/text". Texts
 * are identified by the first 16 bytes of their SHA-256; texts under LIMIT_REF_TEXT_BYTES are not
 * kept (a reference would be as long). core_apply fills it, live and in recovery alike. It covers
 * the pieces of templates and workflow; the state itself knows where the task and the answers
 * are. */
#ifndef SEGUE_CORE_INTERNING_H
#define SEGUE_CORE_INTERNING_H

#include "base/str.h"

#include <stdint.h>

/* Names the member of the record: /prompt/<index> of a call_start, or persona and so on of
 * /workflow/movements/<index> in session_start. There a group's child is in its group's list, at
 * texts_child_index. */
enum text_field { TEXT_PART, TEXT_PERSONA, TEXT_POLICY, TEXT_KNOWLEDGE, TEXT_INSTRUCTION };
uint32_t texts_child_index(size_t group, size_t child);

struct texts_entry;
struct texts_recent;
struct texts {
  struct texts_entry *slots; /* open addressing, a power of two */
  uint32_t count, cap;
  struct texts_recent *recent; /* recent finds, compared with before hashing; or NULL */
};

enum { TEXTS_PLACE_BYTES = 80 };

/* Says, for an answer joined from several logged texts, which bytes belong to which. */
struct joint {
  size_t end;   /* offset in bytes */
  uint64_t seq; /* record that holds the bytes up to there; 0: the bytes are a separator */
};
struct joined {
  struct joint *joints;
  size_t count; /* 0: it is one text */
};

void texts_add(struct texts *t, struct str text, uint64_t seq, enum text_field field,
               uint32_t index); /* the first place wins */
/* Finds the place of a text. False: the text is new (or too short). */
bool texts_find(struct texts *t, struct str text, char place[TEXTS_PLACE_BYTES]);
/* Writes the place of a record's own member. */
void texts_place(uint64_t seq, const char *member, char place[TEXTS_PLACE_BYTES]);
void texts_deinit(struct texts *t);

#endif
