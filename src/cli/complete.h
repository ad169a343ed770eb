/* complete.h - finds the possible completions when a shell's user presses Tab.
 *
 * `segue completion SHELL` prints a script for a shell, and each such script asks
 * `segue completion --for WORD...`, so that three shells cannot offer three things. An answer is a
 * line a word, "WORD<tab>what it is", or the one line ":files" where a path belongs. */
#ifndef SEGUE_CLI_COMPLETE_H
#define SEGUE_CLI_COMPLETE_H

#include <stddef.h>
#include <stdio.h>

/* Prints the completions of the last word. words: everything after "segue" up to the cursor; the
 * last word, perhaps empty, is being typed. */
void complete_words(char *const *words, size_t count, FILE *out);

#endif
