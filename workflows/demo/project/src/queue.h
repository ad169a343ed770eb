/* A queue of at most QUEUE_MAX numbers: first in, first out. */
#ifndef QUEUE_H
#define QUEUE_H

#include <stdbool.h>

enum { QUEUE_MAX = 4 };

struct queue {
  int items[QUEUE_MAX];
  int head, count;
};

bool queue_push(struct queue *q, int value); /* false when it is full */
bool queue_pop(struct queue *q, int *value); /* false when it is empty */

#endif
