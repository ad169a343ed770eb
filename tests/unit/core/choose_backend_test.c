/* Which provider and model a movement and its judge run on: flags, file, the user's default. */
#include "core/decide.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

TEST(who_runs_what) {
  DATA_ROWS("core/choose_backend/who_runs_what.yaml", c, title, workflow, movement, judge, config,
            runs, judged) {
    buf_auto_t text = {0};
    struct err err = {0};
    struct str provider, model;
    char got[64];
    buf_printf(&text,
               "{'name':'w'%s%s,'movements':[{'name':'a'%s%s%s%s%s,'rules':[{'condition':'x',",
               *c.workflow ? "," : "", c.workflow, *c.movement ? "," : "", c.movement,
               *c.judge ? ",'judge':{" : "", c.judge, *c.judge ? "}" : "");
    buf_puts(&text, "'next':'COMPLETE'}]}]}");
    json_auto_t *doc = data_json(text.p);
    buf_clear(&text);
    buf_printf(&text, "{%s}", c.config);
    json_auto_t *config = data_json(text.p);
    struct workflow *wf = workflow_build(doc, &err);
    if (wf == NULL)
      fail_msg("%s: %s", c.title, err.text);
    core_backend(wf, config, 0, &provider, &model);
    print_into(got, sizeof got, STR_FMT " " STR_FMT, STR_ARG(provider), STR_ARG(model));
    if (strcmp(got, c.runs) != 0)
      fail_msg("%s: it runs on %s", c.title, got);
    core_judge_backend(wf, config, 0, &provider, &model);
    print_into(got, sizeof got, STR_FMT " " STR_FMT, STR_ARG(provider), STR_ARG(model));
    if (strcmp(got, c.judged) != 0)
      fail_msg("%s: it is judged by %s", c.title, got);
    workflow_unref(wf);
  }
}
