/* pages.h - memory that a start has touched and that is not needed again. */
#ifndef SEGUE_OS_PAGES_H
#define SEGUE_OS_PAGES_H

/* Lets go of the read-only pages of the shared libraries: loading them looks at most of their code
 * once. What is used again comes back from the page cache. The program's own pages stay, so that a
 * debugger's breakpoints do. */
void pages_drop_libraries(void);

#endif
