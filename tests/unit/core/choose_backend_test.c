/* Which provider and model a movement and its judge run on: flags, file, the user's default. */
#include "core/decide.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static const struct backend_case {
  const char *title, *workflow, *movement, *judge, *config; /* members, ' for " */
  const char *runs, *judged;                                /* "provider model" */
} cases[] = {
    {"nothing named", "", "", "", "", " ", " "},
    {"the default", "", "", "", "'default_provider':'d','default_model':'dm'", "d dm", "d dm"},
    {"the file", "'provider':'w','model':'wm'", "", "", "'default_provider':'d'", "w wm", "w wm"},
    {"the file over the default", "'provider':'w'", "", "",
     "'default_provider':'d','default_model':'dm'", "w ", "w "},
    {"the file names the default's provider", "'provider':'d'", "", "",
     "'default_provider':'d','default_model':'dm'", "d dm", "d dm"},
    {"the movement", "'provider':'w','model':'wm'", "'provider':'m','model':'mm'", "", "", "m mm",
     "m mm"},
    {"the movement's provider does not get the workflow's model", "'provider':'w','model':'wm'",
     "'provider':'m'", "", "", "m ", "m "},
    {"only a model", "", "'model':'mm'", "", "'default_provider':'d','default_model':'dm'", "d mm",
     "d mm"},
    {"a flag for all", "'provider':'w','model':'wm'", "'provider':'m','model':'mm'", "",
     "'provider':'f'", "f ", "f "},
    {"the same provider by flag keeps its model", "'provider':'w','model':'wm'", "", "",
     "'provider':'w'", "w wm", "w wm"},
    {"a flag for the movement", "'provider':'w'", "", "", "'provider':'f','providers':{'a':'fa'}",
     "fa ", "fa "},
    {"a flag for another movement", "'provider':'w'", "", "", "'providers':{'b':'fb'}", "w ", "w "},
    {"a model by flag", "'provider':'w','model':'wm'", "'model':'mm'", "", "'model':'fm'", "w fm",
     "w fm"},
    {"a judge of its own", "'provider':'w','model':'wm'", "", "'provider':'j','model':'jm'", "",
     "w wm", "j jm"},
    {"a judge's provider does not get the movement's model", "'provider':'w','model':'wm'", "",
     "'provider':'j'", "", "w wm", "j "},
    {"a judge's model", "'provider':'w','model':'wm'", "", "'model':'jm'", "", "w wm", "w jm"},
    {"a command", "'provider':'w','model':'wm'", "'command':['make']", "",
     "'provider':'f','model':'fm'", "command ", " "},
    {"a command with a judge", "'provider':'w'", "'command':['make']", "'provider':'j'", "",
     "command ", "j "},
    {"values of other types", "", "", "", "'provider':7,'model':[],'default_provider':'d'", "d ",
     "d "},
};

TEST(who_runs_what) {
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    const struct backend_case *c = &cases[i];
    buf_auto_t text = {0};
    struct err err = {0};
    struct str provider, model;
    char got[64];
    buf_printf(&text,
               "{'name':'w'%s%s,'movements':[{'name':'a'%s%s%s%s%s,'rules':[{'condition':'x',",
               *c->workflow ? "," : "", c->workflow, *c->movement ? "," : "", c->movement,
               *c->judge ? ",'judge':{" : "", c->judge, *c->judge ? "}" : "");
    buf_puts(&text, "'next':'COMPLETE'}]}]}");
    json_auto_t *doc = data_json(text.p);
    buf_clear(&text);
    buf_printf(&text, "{%s}", c->config);
    json_auto_t *config = data_json(text.p);
    struct workflow *wf = workflow_build(doc, &err);
    if (wf == NULL)
      fail_msg("%s: %s", c->title, err.text);
    core_backend(wf, config, 0, &provider, &model);
    print_into(got, sizeof got, STR_FMT " " STR_FMT, STR_ARG(provider), STR_ARG(model));
    if (strcmp(got, c->runs) != 0)
      fail_msg("%s: it runs on %s", c->title, got);
    core_judge_backend(wf, config, 0, &provider, &model);
    print_into(got, sizeof got, STR_FMT " " STR_FMT, STR_ARG(provider), STR_ARG(model));
    if (strcmp(got, c->judged) != 0)
      fail_msg("%s: it is judged by %s", c->title, got);
    workflow_unref(wf);
  }
}
