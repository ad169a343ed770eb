#include "queue.h"

bool queue_push(struct queue *q, int value) {
  if (q->count > QUEUE_MAX)
    return false;
  q->items[(q->head + q->count) % QUEUE_MAX] = value;
  q->count++;
  return true;
}

bool queue_pop(struct queue *q, int *value) {
  if (q->count == 0)
    return false;
  *value = q->items[q->head];
  q->head = (q->head + 1) % QUEUE_MAX;
  q->count--;
  return true;
}
