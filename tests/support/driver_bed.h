/* driver_bed.h - what a driver with a scripted peer needs in a test: profiles, a call, and what it
 * tells, written down.
 *
 *   driver_bed_init; open a driver as bed.driver with driver_bed_news as the host's `news`;
 *   driver_bed_print, driver_bed_told, ...; driver_bed_deinit
 * Lines of JSON are written with ' for ". */
#ifndef SEGUE_TESTS_DRIVER_BED_H
#define SEGUE_TESTS_DRIVER_BED_H

#include "base/memory.h"
#include "format/json_write.h"
#include "provider/agent/agent.h"
#include "provider/agent/driver.h"
#include "provider/agent/replay_recording.h"
#include "provider/profile/profile.h"
#include "support/data.h"

#include <stdlib.h>
#include <string.h>

struct driver_bed {
  struct profiles *profiles;
  const struct driver_ops *ops;
  struct driver *driver;
  struct agent_call call;
  struct call_request request;
  struct buf news; /* a line each */
  struct call_result result;
};

static inline void driver_bed_init(struct driver_bed *bed) {
  struct err_list errors = {0};
  *bed = (struct driver_bed){.profiles = profiles_load(NULL, &errors)};
  assert_non_null(bed->profiles);
  bed->request = (struct call_request){
      .session = "0190", .turn = 2, .call = 3, .purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT};
  bed->call = (struct agent_call){.request = &bed->request,
                                  .cwd = "/w",
                                  .tmpdir = "/t",
                                  .session = "",
                                  .new_session = "",
                                  .prompt = STR("Do \"it\".\n"),
                                  .permission = PERMISSION_EDIT};
}

/* The driver of that profile over that transport. */
static inline void driver_bed_open(struct driver_bed *bed, const char *profile,
                                   enum transport transport, const struct driver_host *host) {
  const struct profile *found = profiles_find(bed->profiles, str_from(profile));
  struct err err;
  bed->ops = driver_find(found, transport, &err);
  assert_non_null(bed->ops);
  bed->driver = bed->ops->open(found, &bed->call, host);
}

static inline void driver_bed_deinit(struct driver_bed *bed) {
  bed->ops->close(bed->driver);
  call_result_deinit(&bed->result);
  buf_deinit(&bed->news);
  profiles_free(bed->profiles);
}

static inline void driver_bed_news(struct driver_bed *bed, const struct provider_news *news) {
  json_auto_t *line = replay_news_json(news);
  char_auto_t *text = json_dump_text(line, JSON_COMPACT);
  buf_printf(&bed->news, "%s\n", text);
}

/* On the driver's stdout, in pieces of seven bytes, so that none depends on how bytes come. */
static inline void driver_bed_print(struct driver_bed *bed, const char *text) {
  for (size_t at = 0, n = strlen(text); at < n; at += 7)
    bed->ops->output(bed->driver, 1, (struct str){text + at, n - at < 7 ? n - at : 7});
}

static inline bool driver_bed_told(const struct driver_bed *bed, const char *part) {
  buf_auto_t text = {0};
  data_quoted(&text, part);
  return strstr(buf_c(&bed->news), buf_c(&text)) != NULL;
}

/* Exactly these lines were written down since the last look. */
static inline void driver_bed_wrote(struct buf *written, const char *lines) {
  buf_auto_t text = {0};
  data_quoted(&text, lines);
  assert_string_equal(buf_c(written), buf_c(&text));
  buf_clear(written);
}

#endif
