/* upgrade.h - rewrites a schema of draft 04, or in the words of OpenAPI 3.0, as draft 07, in place.
 *
 * schema_upgrade(doc)   once, when a schema is read and before anything else looks at it
 *
 * Draft 04 (`$schema` says so): `id` becomes `$id`, and `$schema` draft 07's. There, and in a
 * schema that names no draft, as OpenAPI's never do: `exclusiveMinimum: true` beside a minimum
 * becomes the bound itself, and `nullable: true` adds null to `type` and `enum`. A schema of a
 * later draft stays as it is: there `nullable` says nothing, which schema_lint tells.
 *
 * Rules from: draft-zyp-json-schema-04, draft-fge-json-schema-validation-00 5.1, OpenAPI 3.0.3
 * "Schema Object". */
#ifndef SEGUE_SCHEMA_UPGRADE_H
#define SEGUE_SCHEMA_UPGRADE_H

#include <jansson.h>

void schema_upgrade(json_t *doc);

#endif
