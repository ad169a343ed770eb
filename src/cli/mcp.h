/* mcp.h - makes segue a server of the Model Context Protocol on standard input and output, in both
 * of its eras: up to 2025-11-25 with a handshake, and 2026-07-28 without one
 * (modelcontextprotocol.io, specification).
 *
 * A tool is a command of segue with its words (mcp_tools.c): the same program runs it, so a client
 * sees exactly what a person would. */
#ifndef SEGUE_CLI_MCP_H
#define SEGUE_CLI_MCP_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

enum mcp_place { MCP_WORD, MCP_OPTION, MCP_REPEATED, MCP_FLAG, MCP_INPUT, MCP_FILE };

struct mcp_param {
  const char *name; /* NULL ends the list */
  enum mcp_place place;
  const char *type;   /* string, integer, boolean, object */
  const char *option; /* for MCP_OPTION, MCP_REPEATED, MCP_FLAG, MCP_FILE: without dashes */
  bool required;
  const char *description;
};

struct mcp_tool {
  const char *name; /* NULL ends the table */
  const char *title, *description;
  const char *command[6]; /* its first words */
  bool reads;             /* changes nothing */
  const struct mcp_param *params;
};

extern const struct mcp_tool mcp_tools[];

/* Returns the answer to one message as a new reference; NULL for a notification, which has none. */
json_t *mcp_answer(const json_t *message);

#endif
