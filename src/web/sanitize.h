/* sanitize.h - turns what a model, a file or a person wrote into text that can do nothing but be
 * read.
 *
 * Escape sequences of terminals are removed. Newlines and tabs stay, and a carriage return before a
 * newline is dropped; any other control becomes its picture (U+2400 block). C1 controls, bidi
 * controls and invisible characters become marks such as <U+202E>, in mathematical angle brackets.
 * What is not UTF-8 becomes U+FFFD. The joiners U+200C and U+200D stay after a letter or sign
 * beyond Latin, where scripts and emoji need them. */
#ifndef SEGUE_WEB_SANITIZE_H
#define SEGUE_WEB_SANITIZE_H

#include "base/buf.h"

void sanitize_text(struct buf *out, struct str text);

#endif
