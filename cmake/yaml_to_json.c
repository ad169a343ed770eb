/* yaml_to_json IN OUT - a build tool: a YAML file as one line of JSON, which is read ten times as
 * fast. Knows nothing of what is in it. */
#include "base/file.h"
#include "base/log.h"
#include "base/resource.h"
#include "format/json_write.h"
#include "format/yaml.h"

#include <stdio.h>

const struct resource resource_table[] = {{0, 0, 0}}; /* none is compiled in here */

int main(int argc, char **argv) {
  enum { MOST_BYTES = 1024 * 1024 };
  struct buf in = {0}, out = {0};
  struct err err;
  if (argc != 3)
    die("usage: yaml_to_json IN OUT");
  if (!file_read(argv[1], MOST_BYTES, &in, &err))
    die("%s", err.text);
  json_t *document = yaml_load(argv[1], buf_view(&in), MOST_BYTES, &err);
  if (document == NULL)
    die("%s:%d:%d: %s", argv[1], err.line, err.column, err.text);
  json_write(document, &out);
  FILE *f = fopen(argv[2], "w");
  if (f == NULL || fwrite(out.p, 1, out.n, f) != out.n || fclose(f) != 0)
    die("%s cannot be written", argv[2]);
  json_decref(document);
  buf_deinit(&in);
  buf_deinit(&out);
  return 0;
}
