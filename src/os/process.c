/* Decides what happens to a running program, and changes its state. */
#include "os/process_internal.h"

#include "base/log.h"
#include "os/clock.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>

/* --- names and states --- */

static const char *const end_names[] = {
    [PROCESS_END_EXITED] = "exited",
    [PROCESS_END_EXEC_FAILED] = "exec_failed",
    [PROCESS_END_SPAWN_FAILED] = "spawn_failed",
    [PROCESS_END_WALL_LIMIT] = "wall_limit",
    [PROCESS_END_STALL_LIMIT] = "stall_limit",
    [PROCESS_END_CANCELLED] = "cancelled",
    [PROCESS_END_SHIM_LOST] = "shim_lost",
};

const char *process_end_name(enum process_end why) {
  assert((size_t)why < ARRAY_LEN(end_names));
  return end_names[why];
}

static const struct {
  const char *name;
  unsigned next; /* set of states, a bit each */
} states[] = {
#define PS(name)           (1u << PROCESS_STATE_##name)
#define PS_ROW(name, next) {#name, next},
    PROCESS_STATES(PS_ROW)
#undef PS_ROW
#undef PS
};

static void process_set_state(struct process *p, enum process_state to) {
  if ((states[p->state].next & (1u << to)) == 0)
    BUG("process: %s may not become %s", states[p->state].name, states[to].name);
  p->state = to;
}

/* --- time --- */

static uint64_t later(uint64_t ms, uint64_t by_ms) {
  return by_ms < UINT64_MAX - ms ? ms + by_ms : UINT64_MAX;
}

/* Says when time is up for a program that closed its stdout but lives on; UINT64_MAX = never. */
static uint64_t closed_due_ms(const struct process *p) {
  bool closed = p->closed_ms != 0 && p->channels[CHANNEL_OUT].fd < 0;
  return closed ? later(p->output_ms, p->closed_ms) : UINT64_MAX;
}

/* Says when EVENT_TIME is due; UINT64_MAX = never. */
static uint64_t due_ms(const struct process *p) {
  uint64_t due = UINT64_MAX;
  switch (p->state) {
  case PROCESS_STATE_STARTING:
  case PROCESS_STATE_RUNNING:
    if (p->wall_ms != 0)
      due = later(p->start_ms, p->wall_ms);
    if (p->stall_ms != 0 && later(p->output_ms, p->stall_ms) < due)
      due = later(p->output_ms, p->stall_ms);
    if (closed_due_ms(p) < due)
      due = closed_due_ms(p);
    break;
  case PROCESS_STATE_EXITED:
  case PROCESS_STATE_ENDING:
  case PROCESS_STATE_ORPHANED:
    due = p->grace_end_ms;
    break;
  case PROCESS_STATE_CLOSING:
  case PROCESS_STATE_ENDED:
    break;
  }
  return due;
}

static void process_on_timer(uv_timer_t *timer) {
  process_event(timer->data, EVENT_TIME);
}

/* Sets the timer. Output only changes output_ms: the timer notices when it fires, and is set
 * anew. */
void process_set_timer(struct process *p) {
  uint64_t due = due_ms(p), now = clock_mono_ms();
  if (due == UINT64_MAX) {
    (void)uv_timer_stop(&p->timer);
    return;
  }
  uv_update_time(p->table->loop);
  (void)uv_timer_start(&p->timer, process_on_timer, due > now ? due - now : 1, 0);
}

/* --- its end --- */

static void process_finish(struct process *p) {
  process_set_state(p, PROCESS_STATE_ENDED);
  list_remove(&p->table->processes, &p->in_table);
  if (p->result.duration_ms == 0)
    p->result.duration_ms = clock_mono_ms() - p->start_ms;
  p->result.out = head_tail_finish(&p->out);
  p->result.err = head_tail_finish(&p->err);
  p->result.memory_reached = p->group != NULL && group_memory_reached(p->group);
  p->on_end(p->ctx, &p->result);
  buf_deinit(&p->result.out);
  buf_deinit(&p->result.err);
  buf_deinit(&p->queue);
  group_free(p->group);
  free(p);
}

void process_handle_closed(struct process *p) {
  assert(p->open_handles > 0);
  if (--p->open_handles == 0)
    process_finish(p);
}

static void on_timer_closed(uv_handle_t *handle) {
  process_handle_closed(handle->data);
}

/* --- decisions --- */

static void process_decide(struct process *p, enum process_end why) {
  if (!p->decided)
    p->result.why = why;
  p->decided = true;
}

static void process_end_tree(struct process *p, enum process_end why) {
  process_decide(p, why);
  process_set_state(p, PROCESS_STATE_ENDING);
  p->grace_end_ms = later(clock_mono_ms(), LIMIT_TERM_GRACE_MS + LIMIT_SWEEP_WAIT_MS);
  process_close_fd(&p->control_fd);
  process_set_timer(p);
}

/* Closes all pipes. Every writer is dead, so what is left in them is all there will be. */
static void process_close_all(struct process *p) {
  process_drain_output(p);
  process_set_state(p, PROCESS_STATE_CLOSING);
  p->result.stdin_unread = p->stdin_n > 0 || p->queue.n > 0;
  process_close_fd(&p->control_fd);
  for (enum channel_id id = 0; id < CHANNEL_COUNT; id++)
    process_channel_close(&p->channels[id]);
  uv_close((uv_handle_t *)&p->timer, on_timer_closed);
}

static void end_if_late(struct process *p) {
  uint64_t now = clock_mono_ms();
  if (now < due_ms(p)) {
    process_set_timer(p);
    return;
  }
  switch (p->state) {
  case PROCESS_STATE_STARTING:
  case PROCESS_STATE_RUNNING:
    if (p->wall_ms != 0 && now >= later(p->start_ms, p->wall_ms))
      process_end_tree(p, PROCESS_END_WALL_LIMIT);
    else if (now >= closed_due_ms(p))
      process_event(p, EVENT_ENOUGH);
    else
      process_end_tree(p, PROCESS_END_STALL_LIMIT);
    break;
  case PROCESS_STATE_EXITED:
    p->result.pipes_held = true;
    process_end_tree(p, PROCESS_END_EXITED);
    break;
  case PROCESS_STATE_ENDING: /* the shim cannot finish: take its place */
    if (p->result.survivors) {
      log_warn("process %d cannot be killed", (int)p->shim);
      process_close_all(p);
      break;
    }
    p->result.survivors = true; /* until a sweep says otherwise */
    (void)kill(p->shim, SIGKILL);
    p->grace_end_ms = later(now, LIMIT_SWEEP_WAIT_MS);
    process_set_timer(p);
    break;
  case PROCESS_STATE_ORPHANED:
    log_warn("a provider left processes that cannot be killed");
    p->result.survivors = true;
    process_close_all(p);
    break;
  case PROCESS_STATE_CLOSING:
  case PROCESS_STATE_ENDED:
    break;
  }
}

static bool is_alive(const struct process *p) {
  return p->state == PROCESS_STATE_STARTING || p->state == PROCESS_STATE_RUNNING ||
         p->state == PROCESS_STATE_EXITED;
}

static bool output_ended(const struct process *p) {
  return p->channels[CHANNEL_OUT].fd < 0 && p->channels[CHANNEL_ERR].fd < 0;
}

static void program_exited(struct process *p) {
  p->result.duration_ms = clock_mono_ms() - p->start_ms;
  process_channel_close(&p->channels[CHANNEL_IN]);
  if (p->state != PROCESS_STATE_RUNNING)
    return; /* it obeyed our TERM */
  process_set_state(p, PROCESS_STATE_EXITED);
  p->grace_end_ms = later(clock_mono_ms(), LIMIT_EXIT_GRACE_MS);
  if (output_ended(p))
    process_end_tree(p, PROCESS_END_EXITED);
  else
    process_set_timer(p);
}

void process_event(struct process *p, enum event event) {
  switch (event) {
  case EVENT_STARTED:
    if (p->state == PROCESS_STATE_STARTING)
      process_set_state(p, PROCESS_STATE_RUNNING);
    break;
  case EVENT_EXEC_FAILED:
    if (p->state == PROCESS_STATE_STARTING)
      process_end_tree(p, PROCESS_END_EXEC_FAILED);
    break;
  case EVENT_FORK_FAILED:
    if (p->state == PROCESS_STATE_STARTING)
      process_end_tree(p, PROCESS_END_SPAWN_FAILED);
    break;
  case EVENT_EXITED:
    program_exited(p);
    break;
  case EVENT_OUTPUT_END:
    if (p->state == PROCESS_STATE_EXITED && output_ended(p)) {
      process_end_tree(p, PROCESS_END_EXITED);
    } else if (is_alive(p) && p->closed_ms != 0) {
      p->output_ms = clock_mono_ms();
      process_set_timer(p);
    }
    break;
  case EVENT_TIME:
    end_if_late(p);
    break;
  case EVENT_CANCEL:
    if (is_alive(p))
      process_end_tree(p, PROCESS_END_CANCELLED);
    break;
  case EVENT_ENOUGH:
    if (is_alive(p)) {
      p->result.ended_early = p->state != PROCESS_STATE_EXITED;
      process_end_tree(p, PROCESS_END_EXITED);
    }
    break;
  case EVENT_SHIM_GONE:
    if (p->shim_done) {
      p->result.survivors = false;
      process_close_all(p);
      break;
    }
    process_decide(p, PROCESS_END_SHIM_LOST);
    process_set_state(p, PROCESS_STATE_ORPHANED);
    p->grace_end_ms = later(clock_mono_ms(), LIMIT_SWEEP_WAIT_MS);
    process_set_timer(p);
    process_sweep(p->table);
    break;
  case EVENT_SWEPT:
    p->result.survivors = false;
    process_close_all(p);
    break;
  }
}

void process_cancel(struct process *p) {
  process_event(p, EVENT_CANCEL);
}

void process_note_progress(struct process *p) {
  p->output_ms = clock_mono_ms();
}

void process_finish_early(struct process *p) {
  process_event(p, EVENT_ENOUGH);
}
