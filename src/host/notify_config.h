/* notify_config.h - reads `notify` of the user's configuration: the program that is told what
 * happens.
 *
 *   notify: [PROGRAM, ARGUMENT ...]
 *   notify: {command: [...], on: [question, end], env: [NAME], stall: 10m, timeout: 30s}
 *
 *   set = notify_config_set_read(path, node, &err)      a new object with every member, or NULL
 *   notify_config_set_wants(set, event) */
#ifndef SEGUE_HOST_NOTIFY_CONFIG_H
#define SEGUE_HOST_NOTIFY_CONFIG_H

#include "format/yaml.h"

/* Returns {"command": [...], "on": [...], "env": [...], "stall_ms": N, "timeout_ms": N}. */
json_t *notify_config_set_read(const char *path, const struct yaml_node *node, struct err *err);
bool notify_config_set_wants(const json_t *set, const char *event);

#endif
