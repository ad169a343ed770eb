/* agent.h - providers made from profiles: each runs its agent's program through a driver.
 *
 *   provider_of_profile(profile)       ready for registry_add; borrows the profile
 *
 * A call is over after the client's last final event (it may work on in the background after one,
 * for LIMIT_AGENT_BACKGROUND_MS) and LIMIT_AGENT_FINAL_GRACE_MS to exit by itself, or after its
 * exit and the end of its pipes. Where a profile has no final event (`ends: exit`,
 * text), the end of stdout is the last of the answer: a program that lives on after that and says
 * nothing on stderr for LIMIT_AGENT_FINAL_GRACE_MS is ended, and the answer is whole, with a note.
 * One that neither exits nor closes its stdout may still be writing: it ends at the stall limit, as
 * timeout, and what it printed is in the result's text.
 *
 * Settings of the user (`providers: {NAME: {...}}` in config.yaml): program (a word or a list),
 * args, env (names), set (NAME: value), tools (names), model, max_turns, stall_ms,
 * judge_stall_ms, idle_ms, background_ms, background_idle_ms, background (wait, forbid), transport
 * (auto, exec, native, acp), trust_project (see project_files.h), and the host's concurrency. */
#ifndef SEGUE_PROVIDER_AGENT_AGENT_H
#define SEGUE_PROVIDER_AGENT_AGENT_H

#include "provider/profile/profile.h"
#include "provider/provider.h"

struct provider provider_of_profile(const struct profile *profile);
/* Returns its profile; NULL if it was not made from one. */
const struct profile *provider_profile(const struct provider *provider);

#endif
