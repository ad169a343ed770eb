/* One workflow for all that run it; gone when nobody does. */

#include "host/host.h"
#include "support/test.h"

static struct workflow *build(const char *name) {
  char text[256];
  struct err err;
  print_into(text, sizeof text,
             "{\"name\":\"%s\",\"movements\":[{\"name\":\"a\",\"rules\":[{\"condition\":\"x\","
             "\"next\":\"COMPLETE\"}]}]}",
             name);
  json_auto_t *doc = json_loads(text, 0, NULL);
  struct workflow *wf = workflow_build(doc, &err);
  assert_non_null(wf);
  return wf;
}

static json_t *start_of(struct workflow *wf) {
  char sha256[SHA256_HEX];
  workflow_hash(wf, sha256);
  return json_pack("{ss sO}", "workflow_sha256", sha256, "workflow", wf->doc);
}

/* As it was found, without the reference that came with it. */
static struct workflow *found(struct workflow_cache *cache, const json_t *start) {
  struct workflow *wf = workflow_cache_find(cache, start);
  workflow_unref(wf);
  return wf;
}

TEST(the_same_is_shared) {
  struct workflow_cache *cache = workflow_cache_new();
  struct workflow *first = workflow_cache_share(cache, build("one"));
  struct workflow *again = workflow_cache_share(cache, build("one"));
  struct workflow *other = workflow_cache_share(cache, build("two"));
  assert_ptr_equal(first, again);
  assert_ptr_not_equal(first, other);
  assert_int_equal(first->references, 3); /* two and the cache's */
  json_auto_t *start = start_of(first);
  assert_ptr_equal(found(cache, start), first);
  json_object_set_new(start, "workflow", json_object()); /* a hash alone proves nothing */
  assert_null(workflow_cache_find(cache, start));
  json_auto_t *odd = json_pack("{ss}", "workflow_sha256", "short");
  assert_null(workflow_cache_find(cache, odd));
  workflow_unref(first);
  workflow_unref(again);
  workflow_unref(other);
  workflow_cache_free(cache);
}

TEST(what_nobody_uses_is_dropped) {
  struct workflow_cache *cache = workflow_cache_new();
  struct workflow *one = workflow_cache_share(cache, build("one"));
  json_auto_t *start = start_of(one);
  workflow_unref(one);
  assert_non_null(found(cache, start));
  struct workflow *two = build("two");
  json_auto_t *second = start_of(two);
  workflow_cache_put(cache, second, two);
  assert_null(workflow_cache_find(cache, start));
  assert_ptr_equal(found(cache, second), two);
  workflow_unref(two);
  workflow_cache_free(cache);
  workflow_cache_free(NULL);
}
