/* nested.h - the repositories below a working tree: submodules, and clones that git does not know.
 *
 * Git lists none of their files for the tree around them. So each is a tree of its own (tree.h),
 * looked at after the tree that holds it, one after the other, in the same steps.
 *
 *   nested_add, nested_add_modules    while the tree is listed before the call
 *   step = nested_onward(t, step)     after each step of the tree or of a nested one */
#ifndef SEGUE_TREE_NESTED_H
#define SEGUE_TREE_NESTED_H

#include "tree/tree.h"

/* path: below t's uppermost folder. After the call: one that was not there before counts as one
 * change without numbers. What is no repository, or leads elsewhere, is left out. */
void nested_add(struct tree *t, const char *path);
/* Adds the repositories that .gitmodules names. */
void nested_add_modules(struct tree *t);

/* Returns the nested tree whose step it is; NULL: it is the tree's own. */
struct tree *nested_current(const struct tree *t);
/* Takes what the last step said and returns what to do next for all of them: TREE_DONE when none is
 * left. t->below then has what changed, with paths below t's uppermost folder. */
enum tree_step nested_onward(struct tree *t, enum tree_step step);

void nested_deinit(struct tree *t);

#endif
