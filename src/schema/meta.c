/* Holds the metaschemas of drafts 07, 2019-09 and 2020-12, as published at json-schema.org (AFL 2.1
 * or BSD 3-clause), without white space. */
#include "schema/support.h"

#include <string.h>

/* clang-format off */
static const struct {
  const char *uri;
  const char *text;
} metaschemas[] = {
  {"http://json-schema.org/draft-07/schema",
"{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$id\":\"http://json-schema.org/draft"
"-07/schema#\",\"title\":\"Core schema meta-schema\",\"definitions\":{\"schemaArray\":{\"type\":"
"\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#\"}},\"nonNegativeInteger\":{\"type\":\"integer"
"\",\"minimum\":0},\"nonNegativeIntegerDefault0\":{\"allOf\":[{\"$ref\":\"#/definitions/nonNegati"
"veInteger\"},{\"default\":0}]},\"simpleTypes\":{\"enum\":[\"array\",\"boolean\",\"integer\",\"nu"
"ll\",\"number\",\"object\",\"string\"]},\"stringArray\":{\"type\":\"array\",\"items\":{\"type\":"
"\"string\"},\"uniqueItems\":true,\"default\":[]}},\"type\":[\"object\",\"boolean\"],\"properties"
"\":{\"$id\":{\"type\":\"string\",\"format\":\"uri-reference\"},\"$schema\":{\"type\":\"string\","
"\"format\":\"uri\"},\"$ref\":{\"type\":\"string\",\"format\":\"uri-reference\"},\"$comment\":{\""
"type\":\"string\"},\"title\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},\"defau"
"lt\":true,\"readOnly\":{\"type\":\"boolean\",\"default\":false},\"examples\":{\"type\":\"array\""
",\"items\":true},\"multipleOf\":{\"type\":\"number\",\"exclusiveMinimum\":0},\"maximum\":{\"type"
"\":\"number\"},\"exclusiveMaximum\":{\"type\":\"number\"},\"minimum\":{\"type\":\"number\"},\"ex"
"clusiveMinimum\":{\"type\":\"number\"},\"maxLength\":{\"$ref\":\"#/definitions/nonNegativeIntege"
"r\"},\"minLength\":{\"$ref\":\"#/definitions/nonNegativeIntegerDefault0\"},\"pattern\":{\"type\""
":\"string\",\"format\":\"regex\"},\"additionalItems\":{\"$ref\":\"#\"},\"items\":{\"anyOf\":[{\""
"$ref\":\"#\"},{\"$ref\":\"#/definitions/schemaArray\"}],\"default\":true},\"maxItems\":{\"$ref\""
":\"#/definitions/nonNegativeInteger\"},\"minItems\":{\"$ref\":\"#/definitions/nonNegativeIntege"
"rDefault0\"},\"uniqueItems\":{\"type\":\"boolean\",\"default\":false},\"contains\":{\"$ref\":\"#"
"\"},\"maxProperties\":{\"$ref\":\"#/definitions/nonNegativeInteger\"},\"minProperties\":{\"$ref"
"\":\"#/definitions/nonNegativeIntegerDefault0\"},\"required\":{\"$ref\":\"#/definitions/stringAr"
"ray\"},\"additionalProperties\":{\"$ref\":\"#\"},\"definitions\":{\"type\":\"object\",\"addition"
"alProperties\":{\"$ref\":\"#\"},\"default\":{}},\"properties\":{\"type\":\"object\",\"additional"
"Properties\":{\"$ref\":\"#\"},\"default\":{}},\"patternProperties\":{\"type\":\"object\",\"addit"
"ionalProperties\":{\"$ref\":\"#\"},\"propertyNames\":{\"format\":\"regex\"},\"default\":{}},\"de"
"pendencies\":{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref"
"\":\"#/definitions/stringArray\"}]}},\"propertyNames\":{\"$ref\":\"#\"},\"const\":true,\"enum\":"
"{\"type\":\"array\",\"items\":true,\"minItems\":1,\"uniqueItems\":true},\"type\":{\"anyOf\":[{\""
"$ref\":\"#/definitions/simpleTypes\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#/definitions/si"
"mpleTypes\"},\"minItems\":1,\"uniqueItems\":true}]},\"format\":{\"type\":\"string\"},\"contentMe"
"diaType\":{\"type\":\"string\"},\"contentEncoding\":{\"type\":\"string\"},\"if\":{\"$ref\":\"#\""
"},\"then\":{\"$ref\":\"#\"},\"else\":{\"$ref\":\"#\"},\"allOf\":{\"$ref\":\"#/definitions/schema"
"Array\"},\"anyOf\":{\"$ref\":\"#/definitions/schemaArray\"},\"oneOf\":{\"$ref\":\"#/definitions/"
"schemaArray\"},\"not\":{\"$ref\":\"#\"}},\"default\":true}"},
  {"https://json-schema.org/draft/2019-09/schema",
"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$id\":\"https://json-schema.org"
"/draft/2019-09/schema\",\"$vocabulary\":{\"https://json-schema.org/draft/2019-09/vocab/core\""
":true,\"https://json-schema.org/draft/2019-09/vocab/applicator\":true,\"https://json-schema"
".org/draft/2019-09/vocab/validation\":true,\"https://json-schema.org/draft/2019-09/vocab/m"
"eta-data\":true,\"https://json-schema.org/draft/2019-09/vocab/format\":false,\"https://json-"
"schema.org/draft/2019-09/vocab/content\":true},\"$recursiveAnchor\":true,\"title\":\"Core and "
"Validation specifications meta-schema\",\"allOf\":[{\"$ref\":\"meta/core\"},{\"$ref\":\"meta/app"
"licator\"},{\"$ref\":\"meta/validation\"},{\"$ref\":\"meta/meta-data\"},{\"$ref\":\"meta/format"
"\"},{\"$ref\":\"meta/content\"}],\"type\":[\"object\",\"boolean\"],\"properties\":{\"definitions"
"\":{\"$comment\":\"While no longer an official keyword as it is replaced by $defs, this keyw"
"ord is retained in the meta-schema to prevent incompatible extensions as it remains in c"
"ommon use.\",\"type\":\"object\",\"additionalProperties\":{\"$recursiveRef\":\"#\"},\"default\":"
"{}},\"dependencies\":{\"$comment\":\"\\\"dependencies\\\" is no longer a keyword, but schema aut"
"hors should avoid redefining it to facilitate a smooth transition to \\\"dependentSchemas\\"
"\" and \\\"dependentRequired\\\"\",\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[{\"$"
"recursiveRef\":\"#\"},{\"$ref\":\"meta/validation#/$defs/stringArray\"}]}}}}"},
  {"https://json-schema.org/draft/2019-09/meta/applicator",
"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$id\":\"https://json-schema.org"
"/draft/2019-09/meta/applicator\",\"$vocabulary\":{\"https://json-schema.org/draft/2019-09/vo"
"cab/applicator\":true},\"$recursiveAnchor\":true,\"title\":\"Applicator vocabulary meta-schema"
"\",\"type\":[\"object\",\"boolean\"],\"properties\":{\"additionalItems\":{\"$recursiveRef\":\"#"
"\"},\"unevaluatedItems\":{\"$recursiveRef\":\"#\"},\"items\":{\"anyOf\":[{\"$recursiveRef\":\"#"
"\"},{\"$ref\":\"#/$defs/schemaArray\"}]},\"contains\":{\"$recursiveRef\":\"#\"},\"additionalProp"
"erties\":{\"$recursiveRef\":\"#\"},\"unevaluatedProperties\":{\"$recursiveRef\":\"#\"},\"propert"
"ies\":{\"type\":\"object\",\"additionalProperties\":{\"$recursiveRef\":\"#\"},\"default\":{}},\""
"patternProperties\":{\"type\":\"object\",\"additionalProperties\":{\"$recursiveRef\":\"#\"},\"pr"
"opertyNames\":{\"format\":\"regex\"},\"default\":{}},\"dependentSchemas\":{\"type\":\"object\","
"\"additionalProperties\":{\"$recursiveRef\":\"#\"}},\"propertyNames\":{\"$recursiveRef\":\"#\"},"
"\"if\":{\"$recursiveRef\":\"#\"},\"then\":{\"$recursiveRef\":\"#\"},\"else\":{\"$recursiveRef\":"
"\"#\"},\"allOf\":{\"$ref\":\"#/$defs/schemaArray\"},\"anyOf\":{\"$ref\":\"#/$defs/schemaArray\"}"
",\"oneOf\":{\"$ref\":\"#/$defs/schemaArray\"},\"not\":{\"$recursiveRef\":\"#\"}},\"$defs\":{\"sc"
"hemaArray\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"$recursiveRef\":\"#\"}}}}"},
  {"https://json-schema.org/draft/2019-09/meta/content",
"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$id\":\"https://json-schema.org"
"/draft/2019-09/meta/content\",\"$vocabulary\":{\"https://json-schema.org/draft/2019-09/vocab"
"/content\":true},\"$recursiveAnchor\":true,\"title\":\"Content vocabulary meta-schema\",\"type\""
":[\"object\",\"boolean\"],\"properties\":{\"contentMediaType\":{\"type\":\"string\"},\"contentEn"
"coding\":{\"type\":\"string\"},\"contentSchema\":{\"$recursiveRef\":\"#\"}}}"},
  {"https://json-schema.org/draft/2019-09/meta/core",
"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$id\":\"https://json-schema.org"
"/draft/2019-09/meta/core\",\"$vocabulary\":{\"https://json-schema.org/draft/2019-09/vocab/co"
"re\":true},\"$recursiveAnchor\":true,\"title\":\"Core vocabulary meta-schema\",\"type\":[\"objec"
"t\",\"boolean\"],\"properties\":{\"$id\":{\"type\":\"string\",\"format\":\"uri-reference\",\"$co"
"mment\":\"Non-empty fragments not allowed.\",\"pattern\":\"^[^#]*#?$\"},\"$schema\":{\"type\":\""
"string\",\"format\":\"uri\"},\"$anchor\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z][-A-Za-z0-9"
".:_]*$\"},\"$ref\":{\"type\":\"string\",\"format\":\"uri-reference\"},\"$recursiveRef\":{\"type"
"\":\"string\",\"format\":\"uri-reference\"},\"$recursiveAnchor\":{\"type\":\"boolean\",\"default"
"\":false},\"$vocabulary\":{\"type\":\"object\",\"propertyNames\":{\"type\":\"string\",\"format\""
":\"uri\"},\"additionalProperties\":{\"type\":\"boolean\"}},\"$comment\":{\"type\":\"string\"},\""
"$defs\":{\"type\":\"object\",\"additionalProperties\":{\"$recursiveRef\":\"#\"},\"default\":{}}}"
"}"},
  {"https://json-schema.org/draft/2019-09/meta/format",
"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$id\":\"https://json-schema.org"
"/draft/2019-09/meta/format\",\"$vocabulary\":{\"https://json-schema.org/draft/2019-09/vocab/"
"format\":true},\"$recursiveAnchor\":true,\"title\":\"Format vocabulary meta-schema\",\"type\":["
"\"object\",\"boolean\"],\"properties\":{\"format\":{\"type\":\"string\"}}}"},
  {"https://json-schema.org/draft/2019-09/meta/meta-data",
"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$id\":\"https://json-schema.org"
"/draft/2019-09/meta/meta-data\",\"$vocabulary\":{\"https://json-schema.org/draft/2019-09/voc"
"ab/meta-data\":true},\"$recursiveAnchor\":true,\"title\":\"Meta-data vocabulary meta-schema\",\""
"type\":[\"object\",\"boolean\"],\"properties\":{\"title\":{\"type\":\"string\"},\"description\":"
"{\"type\":\"string\"},\"default\":true,\"deprecated\":{\"type\":\"boolean\",\"default\":false},"
"\"readOnly\":{\"type\":\"boolean\",\"default\":false},\"writeOnly\":{\"type\":\"boolean\",\"defa"
"ult\":false},\"examples\":{\"type\":\"array\",\"items\":true}}}"},
  {"https://json-schema.org/draft/2019-09/meta/validation",
"{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$id\":\"https://json-schema.org"
"/draft/2019-09/meta/validation\",\"$vocabulary\":{\"https://json-schema.org/draft/2019-09/vo"
"cab/validation\":true},\"$recursiveAnchor\":true,\"title\":\"Validation vocabulary meta-schema"
"\",\"type\":[\"object\",\"boolean\"],\"properties\":{\"multipleOf\":{\"type\":\"number\",\"exclu"
"siveMinimum\":0},\"maximum\":{\"type\":\"number\"},\"exclusiveMaximum\":{\"type\":\"number\"},\""
"minimum\":{\"type\":\"number\"},\"exclusiveMinimum\":{\"type\":\"number\"},\"maxLength\":{\"$ref"
"\":\"#/$defs/nonNegativeInteger\"},\"minLength\":{\"$ref\":\"#/$defs/nonNegativeIntegerDefault0"
"\"},\"pattern\":{\"type\":\"string\",\"format\":\"regex\"},\"maxItems\":{\"$ref\":\"#/$defs/nonN"
"egativeInteger\"},\"minItems\":{\"$ref\":\"#/$defs/nonNegativeIntegerDefault0\"},\"uniqueItems\""
":{\"type\":\"boolean\",\"default\":false},\"maxContains\":{\"$ref\":\"#/$defs/nonNegativeInteger"
"\"},\"minContains\":{\"$ref\":\"#/$defs/nonNegativeInteger\",\"default\":1},\"maxProperties\":{"
"\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minProperties\":{\"$ref\":\"#/$defs/nonNegativeIntege"
"rDefault0\"},\"required\":{\"$ref\":\"#/$defs/stringArray\"},\"dependentRequired\":{\"type\":\"o"
"bject\",\"additionalProperties\":{\"$ref\":\"#/$defs/stringArray\"}},\"const\":true,\"enum\":{\""
"type\":\"array\",\"items\":true},\"type\":{\"anyOf\":[{\"$ref\":\"#/$defs/simpleTypes\"},{\"type"
"\":\"array\",\"items\":{\"$ref\":\"#/$defs/simpleTypes\"},\"minItems\":1,\"uniqueItems\":true}]}"
"},\"$defs\":{\"nonNegativeInteger\":{\"type\":\"integer\",\"minimum\":0},\"nonNegativeIntegerDef"
"ault0\":{\"$ref\":\"#/$defs/nonNegativeInteger\",\"default\":0},\"simpleTypes\":{\"enum\":[\"arr"
"ay\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]},\"stringArray\":{\"type"
"\":\"array\",\"items\":{\"type\":\"string\"},\"uniqueItems\":true,\"default\":[]}}}"},
  {"https://json-schema.org/draft/2020-12/schema",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/schema\",\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/vocab/core\""
":true,\"https://json-schema.org/draft/2020-12/vocab/applicator\":true,\"https://json-schema"
".org/draft/2020-12/vocab/unevaluated\":true,\"https://json-schema.org/draft/2020-12/vocab/"
"validation\":true,\"https://json-schema.org/draft/2020-12/vocab/meta-data\":true,\"https://j"
"son-schema.org/draft/2020-12/vocab/format-annotation\":true,\"https://json-schema.org/draf"
"t/2020-12/vocab/content\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Core and Validation spec"
"ifications meta-schema\",\"allOf\":[{\"$ref\":\"meta/core\"},{\"$ref\":\"meta/applicator\"},{\"$"
"ref\":\"meta/unevaluated\"},{\"$ref\":\"meta/validation\"},{\"$ref\":\"meta/meta-data\"},{\"$ref"
"\":\"meta/format-annotation\"},{\"$ref\":\"meta/content\"}],\"type\":[\"object\",\"boolean\"],\""
"$comment\":\"This meta-schema also defines keywords that have appeared in previous drafts "
"in order to prevent incompatible extensions as they remain in common use.\",\"properties\":"
"{\"definitions\":{\"$comment\":\"\\\"definitions\\\" has been replaced by \\\"$defs\\\".\",\"typ"
"e\":\"object\",\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"deprecated\":true,\"defaul"
"t\":{}},\"dependencies\":{\"$comment\":\"\\\"dependencies\\\" has been split and replaced by \\"
"\"dependentSchemas\\\" and \\\"dependentRequired\\\" in order to serve their differing semantic"
"s.\",\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[{\"$dynamicRef\":\"#meta\"},{\"$re"
"f\":\"meta/validation#/$defs/stringArray\"}]},\"deprecated\":true,\"default\":{}},\"$recursiveAn"
"chor\":{\"$comment\":\"\\\"$recursiveAnchor\\\" has been replaced by \\\"$dynamicAnchor\\\".\","
"\"$ref\":\"meta/core#/$defs/anchorString\",\"deprecated\":true},\"$recursiveRef\":{\"$comment\":"
"\"\\\"$recursiveRef\\\" has been replaced by \\\"$dynamicRef\\\".\",\"$ref\":\"meta/core#/$defs/"
"uriReferenceString\",\"deprecated\":true}}}"},
  {"https://json-schema.org/draft/2020-12/meta/applicator",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/meta/applicator\",\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/vo"
"cab/applicator\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Applicator vocabulary meta-schema"
"\",\"type\":[\"object\",\"boolean\"],\"properties\":{\"prefixItems\":{\"$ref\":\"#/$defs/schemaA"
"rray\"},\"items\":{\"$dynamicRef\":\"#meta\"},\"contains\":{\"$dynamicRef\":\"#meta\"},\"additio"
"nalProperties\":{\"$dynamicRef\":\"#meta\"},\"properties\":{\"type\":\"object\",\"additionalProp"
"erties\":{\"$dynamicRef\":\"#meta\"},\"default\":{}},\"patternProperties\":{\"type\":\"object\","
"\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"propertyNames\":{\"format\":\"regex\"},\""
"default\":{}},\"dependentSchemas\":{\"type\":\"object\",\"additionalProperties\":{\"$dynamicRef"
"\":\"#meta\"},\"default\":{}},\"propertyNames\":{\"$dynamicRef\":\"#meta\"},\"if\":{\"$dynamicRe"
"f\":\"#meta\"},\"then\":{\"$dynamicRef\":\"#meta\"},\"else\":{\"$dynamicRef\":\"#meta\"},\"allOf"
"\":{\"$ref\":\"#/$defs/schemaArray\"},\"anyOf\":{\"$ref\":\"#/$defs/schemaArray\"},\"oneOf\":{\""
"$ref\":\"#/$defs/schemaArray\"},\"not\":{\"$dynamicRef\":\"#meta\"}},\"$defs\":{\"schemaArray\":"
"{\"type\":\"array\",\"minItems\":1,\"items\":{\"$dynamicRef\":\"#meta\"}}}}"},
  {"https://json-schema.org/draft/2020-12/meta/content",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/meta/content\",\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/vocab"
"/content\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Content vocabulary meta-schema\",\"type"
"\":[\"object\",\"boolean\"],\"properties\":{\"contentEncoding\":{\"type\":\"string\"},\"contentM"
"ediaType\":{\"type\":\"string\"},\"contentSchema\":{\"$dynamicRef\":\"#meta\"}}}"},
  {"https://json-schema.org/draft/2020-12/meta/core",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/meta/core\",\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/vocab/co"
"re\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Core vocabulary meta-schema\",\"type\":[\"obj"
"ect\",\"boolean\"],\"properties\":{\"$id\":{\"$ref\":\"#/$defs/uriReferenceString\",\"$comment\""
":\"Non-empty fragments not allowed.\",\"pattern\":\"^[^#]*#?$\"},\"$schema\":{\"$ref\":\"#/$defs"
"/uriString\"},\"$ref\":{\"$ref\":\"#/$defs/uriReferenceString\"},\"$anchor\":{\"$ref\":\"#/$defs"
"/anchorString\"},\"$dynamicRef\":{\"$ref\":\"#/$defs/uriReferenceString\"},\"$dynamicAnchor\":{"
"\"$ref\":\"#/$defs/anchorString\"},\"$vocabulary\":{\"type\":\"object\",\"propertyNames\":{\"$re"
"f\":\"#/$defs/uriString\"},\"additionalProperties\":{\"type\":\"boolean\"}},\"$comment\":{\"type"
"\":\"string\"},\"$defs\":{\"type\":\"object\",\"additionalProperties\":{\"$dynamicRef\":\"#meta"
"\"}}},\"$defs\":{\"anchorString\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z_][-A-Za-z0-9._]*$"
"\"},\"uriString\":{\"type\":\"string\",\"format\":\"uri\"},\"uriReferenceString\":{\"type\":\"st"
"ring\",\"format\":\"uri-reference\"}}}"},
  {"https://json-schema.org/draft/2020-12/meta/format-annotation",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/meta/format-annotation\",\"$vocabulary\":{\"https://json-schema.org/draft/202"
"0-12/vocab/format-annotation\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Format vocabulary m"
"eta-schema for annotation results\",\"type\":[\"object\",\"boolean\"],\"properties\":{\"format\""
":{\"type\":\"string\"}}}"},
  {"https://json-schema.org/draft/2020-12/meta/meta-data",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/meta/meta-data\",\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/voc"
"ab/meta-data\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Meta-data vocabulary meta-schema\","
"\"type\":[\"object\",\"boolean\"],\"properties\":{\"title\":{\"type\":\"string\"},\"description"
"\":{\"type\":\"string\"},\"default\":true,\"deprecated\":{\"type\":\"boolean\",\"default\":false"
"},\"readOnly\":{\"type\":\"boolean\",\"default\":false},\"writeOnly\":{\"type\":\"boolean\",\"de"
"fault\":false},\"examples\":{\"type\":\"array\",\"items\":true}}}"},
  {"https://json-schema.org/draft/2020-12/meta/unevaluated",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/meta/unevaluated\",\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/v"
"ocab/unevaluated\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Unevaluated applicator vocabula"
"ry meta-schema\",\"type\":[\"object\",\"boolean\"],\"properties\":{\"unevaluatedItems\":{\"$dyna"
"micRef\":\"#meta\"},\"unevaluatedProperties\":{\"$dynamicRef\":\"#meta\"}}}"},
  {"https://json-schema.org/draft/2020-12/meta/validation",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/meta/validation\",\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/vo"
"cab/validation\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Validation vocabulary meta-schema"
"\",\"type\":[\"object\",\"boolean\"],\"properties\":{\"type\":{\"anyOf\":[{\"$ref\":\"#/$defs/si"
"mpleTypes\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/simpleTypes\"},\"minItems\":1,\"u"
"niqueItems\":true}]},\"const\":true,\"enum\":{\"type\":\"array\",\"items\":true},\"multipleOf\":"
"{\"type\":\"number\",\"exclusiveMinimum\":0},\"maximum\":{\"type\":\"number\"},\"exclusiveMaximu"
"m\":{\"type\":\"number\"},\"minimum\":{\"type\":\"number\"},\"exclusiveMinimum\":{\"type\":\"num"
"ber\"},\"maxLength\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minLength\":{\"$ref\":\"#/$defs"
"/nonNegativeIntegerDefault0\"},\"pattern\":{\"type\":\"string\",\"format\":\"regex\"},\"maxItems"
"\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minItems\":{\"$ref\":\"#/$defs/nonNegativeInteger"
"Default0\"},\"uniqueItems\":{\"type\":\"boolean\",\"default\":false},\"maxContains\":{\"$ref\":"
"\"#/$defs/nonNegativeInteger\"},\"minContains\":{\"$ref\":\"#/$defs/nonNegativeInteger\",\"defau"
"lt\":1},\"maxProperties\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minProperties\":{\"$ref\":"
"\"#/$defs/nonNegativeIntegerDefault0\"},\"required\":{\"$ref\":\"#/$defs/stringArray\"},\"depend"
"entRequired\":{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/$defs/stringArray\"}}}"
",\"$defs\":{\"nonNegativeInteger\":{\"type\":\"integer\",\"minimum\":0},\"nonNegativeIntegerDefa"
"ult0\":{\"$ref\":\"#/$defs/nonNegativeInteger\",\"default\":0},\"simpleTypes\":{\"enum\":[\"arra"
"y\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]},\"stringArray\":{\"type"
"\":\"array\",\"items\":{\"type\":\"string\"},\"uniqueItems\":true,\"default\":[]}}}"},
  {"https://json-schema.org/draft/2020-12/meta/format-assertion",
"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"https://json-schema.org"
"/draft/2020-12/meta/format-assertion\",\"$vocabulary\":{\"https://json-schema.org/draft/2020"
"-12/vocab/format-assertion\":true},\"$dynamicAnchor\":\"meta\",\"title\":\"Format vocabulary met"
"a-schema for assertion results\",\"type\":[\"object\",\"boolean\"],\"properties\":{\"format\":{"
"\"type\":\"string\"}}}"},
};
/* clang-format on */

const char *schema_metaschema_text(const char *uri) {
  for (size_t i = 0; i < sizeof metaschemas / sizeof *metaschemas; i++)
    if (!strcmp(uri, metaschemas[i].uri))
      return metaschemas[i].text;
  return NULL;
}
