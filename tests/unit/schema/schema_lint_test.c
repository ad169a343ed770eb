/* Warnings of schemas that are sound and still ask for trouble with a model. */
#include "schema/schema_lint.h"

#include "base/buf.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

#define ONE(member)                                                                                \
  "{'type':'object','properties':{'a':" member "},'required':['a'],'maxProperties':3}"
#define WARNED "$.properties.a:required "

static const struct {
  const char *schema, *warnings; /* "path:keyword " of each */
} cases[] = {
    {ONE("{'type':'string'}"), WARNED},
    {ONE("{'type':'number'}"), WARNED},
    {ONE("{'type':'integer','minimum':0}"), WARNED},
    {ONE("{'type':'string','format':'email'}"), WARNED},
    {ONE("{'type':['string','null']}"), ""},
    {ONE("{'type':['string','number']}"), WARNED},
    {ONE("{'type':'string','nullable':true}"), "$.properties.a.nullable:unknown "},
    {ONE("{'anyOf':[{'type':'string'},{'type':'null'}]}"), ""},
    {ONE("{'oneOf':[{'type':'string'},{'type':'number'}]}"), WARNED},
    {ONE("{'oneOf':[{'const':'x'},{'enum':['y']}]}"), ""},
    {ONE("{'type':'string','enum':['x','y']}"), ""},
    {ONE("{'const':1}"), ""},
    {ONE("{'type':'boolean'}"), ""},
    {ONE("{'type':'string','default':''}"), ""},
    {ONE("{'type':'array','items':{'type':'string'}}"), ""},
    {ONE("{'type':'array','minItems':1}"), WARNED},
    {ONE("{}"), ""},
    {ONE("true"), ""},
    {ONE("{'type':'object'}"), ""},
    {"{'$defs':{'n':{'type':'string'},'m':{'type':['string','null']}},'required':['a','b'],"
     "'properties':{'a':{'$ref':'#/$defs/n'},'b':{'$ref':'#/$defs/m'}},'maxProperties':2}",
     WARNED},
    {"{'type':'object','properties':{'a':{'type':'string'}},'minProperties':1}", ""}, /* optional */
    {"{'properties':{'reason':{'type':'string'},'confidence':{'type':'number','maximum':1}},"
     "'required':['reason','confidence']}",
     ""},
    {"{'properties':{'l':{'items':{'properties':{'p':{'type':'number'}},'required':['p'],"
     "'maxProperties':1}}}}",
     "$.properties.l.items.properties.p:required "},
    {"{'type':'object','properties':{'x':{'type':'string'}}}", "$:unbounded "},
    {"{'type':'array','items':{'type':'string'}}", "$:unbounded "},
    {"{'type':'array','items':{'type':'string'},'maxItems':9}", ""},
    {"{'type':'object','properties':{'ok':{'type':'boolean'}}}", ""},
    {"{'type':'string','pattern':'^a'}", ""},
    /* slips */
    {"{'type':'string','requird':['a'],'minlength':1,'maxLength':9,'x-a':1,'titel':2,'word':3}",
     "$.requird:unknown $.minlength:unknown "},
    {"{'$schema':'http://json-schema.org/draft-07/schema#','$ref':'#/definitions/a','title':'t',"
     "'minimum':1,'definitions':{'a':{'type':'null'}}}",
     "$.minimum:$ref "},
    {"{'$ref':'#/$defs/a','minimum':1,'$defs':{'a':{'type':'null'}}}", ""},
    {"{'enum':[]}", "$.enum:impossible "},
    {"{'enum':[1,'a'],'type':'boolean'}", "$.enum:impossible "},
    {"{'enum':[1,'a'],'type':'integer'}", ""},
    {"{'const':1.0,'type':'integer'}", ""},
    {"{'const':null,'type':'string'}", "$.const:impossible "},
    {"{'minItems':3,'maxItems':2}", "$.minItems:impossible "},
    {"{'minimum':2,'maximum':2}", ""},
    {"{'minimum':2,'exclusiveMaximum':2}", "$.minimum:impossible "},
    {"{'exclusiveMinimum':2,'maximum':2.5}", ""},
    {"{'properties':{'a':{}},'required':['a','b'],'maxProperties':2}", "$.required[1]:required "},
    {"{'properties':{'a':{}},'required':['b'],'additionalProperties':false,'maxProperties':2}",
     "$.required[0]:impossible "},
    {"{'properties':{'a':{}},'required':['b'],'patternProperties':{'b':{}},'maxProperties':2}", ""},
    {"{'required':['b'],'maxProperties':2}", ""},
    {"true", ""},
    {"5", ""},
};

TEST(warnings) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct schema_errors found = {0};
    buf_auto_t all = {0};
    json_auto_t *doc = data_json(cases[i].schema);
    schema_lint(doc, false, &found);
    for (size_t k = 0; k < found.count; k++)
      buf_printf(&all, "%s:%s ", found.items[k].path, found.items[k].keyword);
    if (strcmp(buf_c(&all), cases[i].warnings) != 0)
      fail_msg("%s: %s", cases[i].schema, buf_c(&all));
    schema_errors_deinit(&found);
    schema_lint(doc, true, &found);
    for (size_t k = 0; k < found.count; k++)
      assert_string_not_equal(found.items[k].keyword, "unbounded"); /* an invariant bounds it */
    schema_errors_deinit(&found);
  }
}

/* Branches that lead back to themselves double with each level; the look ends all the same. */
TEST(hostile_schemas_end) {
  AUTO(schema_errors_deinit) struct schema_errors found = {0};
  json_auto_t *doc =
      data_json("{'properties':{'a':{'$ref':'#/$defs/d'}},'required':['a'],'$defs':{'d':{"
                "'anyOf':[{'$ref':'#/$defs/d'},{'$ref':'#/$defs/d'},{'$ref':'#/$defs/e'}]},"
                "'e':{'allOf':[{'$ref':'#/$defs/d'},{'$ref':'#/$defs/d'}]}}}");
  schema_lint(doc, false, &found);
}
