/* Lists the tools that segue offers to a client of the Model Context Protocol. */
#include "cli/mcp.h"

static const struct mcp_param submit_params[] = {
    {"workflow", MCP_WORD, "string", NULL, true, "a file, or the name of a workflow"},
    {"task", MCP_INPUT, "string", NULL, false, "what to do"},
    {"cwd", MCP_OPTION, "string", "--cwd", false, "where agents work"},
    {"provider", MCP_OPTION, "string", "--provider", false, "the backend of all agent movements"},
    {"model", MCP_OPTION, "string", "--model", false, "the model of all agent movements"},
    {0},
};
static const struct mcp_param list_params[] = {
    {"status", MCP_OPTION, "string", "--status", false,
     "running, waiting, stopped, complete, ...; several, separated by commas"},
    {"workflow", MCP_OPTION, "string", "--workflow", false, "sessions of this workflow"},
    {"since", MCP_OPTION, "string", "--since", false, "90m, 12h or 3d ago, or a date"},
    {"number", MCP_OPTION, "integer", "--number", false, "how many to list at most (default 50)"},
    {0},
};
static const struct mcp_param show_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session's id, a prefix of it, or last"},
    {"movement", MCP_WORD, "string", NULL, false,
     "one judgment in full: the movement's name, or NAME#N for its run N"},
    {"full", MCP_FLAG, "boolean", "--full", false, "do not shorten texts"},
    {0},
};
static const struct mcp_param id_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session's id, a prefix of it, or last"},
    {0},
};
static const struct mcp_param cancel_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session's id"},
    {0},
};
static const struct mcp_param watch_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session's id, a prefix of it, or last"},
    {"seconds", MCP_INPUT, "integer", NULL, false, "how long to wait at most (default 30)"},
    {0},
};
static const struct mcp_param answer_params[] = {
    {"id", MCP_WORD, "string", NULL, true, "the session that asks"},
    {"movement", MCP_WORD, "string", NULL, false, "which movement, where several ask"},
    {"text", MCP_FILE, "string", "--file", false, "the answer as text"},
    {"choice", MCP_OPTION, "integer", "--choice", false, "the number of one of the choices"},
    {0},
};
static const struct mcp_param judge_params[] = {
    {"text", MCP_INPUT, "string", NULL, true, "the report to judge"},
    {"rules", MCP_REPEATED, "string", "--rule", true,
     "the conditions, in order; the first is rule 1"},
    {"provider", MCP_OPTION, "string", "--provider", false, "who judges"},
    {"model", MCP_OPTION, "string", "--model", false, "the judge's model"},
    {"stages", MCP_OPTION, "string", "--stages", false,
     "the ways to judge: structured_output, phase3_tag, phase1_tag, ai_judge; separated by commas"},
    {0},
};
static const struct mcp_param extract_params[] = {
    {"text", MCP_INPUT, "string", NULL, true, "what a model said"},
    {"schema", MCP_FILE, "object", "--schema", false, "the JSON Schema that the value must pass"},
    {0},
};

const struct mcp_tool mcp_tools[] = {
    {"submit",
     "Start a session",
     "Hands a workflow to segue's daemon, which runs it in the background, even after this client "
     "has exited. Returns the session.",
     {"submit", "--json"},
     false,
     submit_params},
    {"list",
     "List sessions",
     "Lists sessions with their status, newest first, one JSON object per line.",
     {"ls", "--json"},
     true,
     list_params},
    {"show",
     "Read a session",
     "Shows what ran, turn by turn, and why it led where it did; with a movement, one judgment in "
     "full.",
     {"show"},
     true,
     show_params},
    {"watch",
     "Wait for a session",
     "Waits until a session ends or stops, or the time is over, and lists its turns.",
     {"show", "--follow"},
     true,
     watch_params},
    {"answer",
     "Answer a question",
     "Answers a question of a session that is waiting for a person. Pass on only what the person "
     "said.",
     {"answer", "--name", "a client of MCP"}, /* the log must not say that a person answered */
     false,
     answer_params},
    {"cancel",
     "Cancel a session",
     "Ends a session for good.",
     {"cancel", "--json"},
     false,
     cancel_params},
    {"judge",
     "Judge a text",
     "Judges which of the rules holds for a report: by structured output, then by a tag, then by "
     "an AI. Returns the judgment with its method.",
     {"judge", "--json"},
     true,
     judge_params},
    {"extract",
     "Read JSON out of a text",
     "Finds the JSON value in what a model said, repairs it where that is safe, and checks it.",
     {"extract", "--json"},
     true,
     extract_params},
    {"verify",
     "Check a log",
     "Checks whether a session's log is what was written.",
     {"verify", "--json"},
     true,
     id_params},
    {0},
};
