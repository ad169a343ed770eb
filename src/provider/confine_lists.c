/* Lists what is secret, and what builds keep, in one place. */
#include "provider/confine.h"

#include <stddef.h>

const char *const confine_secrets[] = {
    /* keys and logins */
    "~/.ssh", "~/.aws", "~/.gnupg", "~/.config/gcloud", "~/.azure", "~/.kube", "~/.netrc",
    "~/.git-credentials", "~/.config/git/credentials", "~/.config/gh", "~/.config/hub", "~/.pgpass",
    "~/.my.cnf", "~/.pypirc", "~/.vault-token", "~/.password-store", "~/.docker/config.json",
    "~/.cargo/credentials", "~/.cargo/credentials.toml", "~/.local/share/keyrings",
    "~/.config/rclone", "~/.config/op", "~/.terraform.d/credentials.tfrc.json",
    /* browsers and mail */
    "~/.mozilla", "~/.config/google-chrome", "~/.config/chromium", "~/.config/BraveSoftware",
    "~/.config/microsoft-edge", "~/.config/vivaldi", "~/.config/opera", "~/.thunderbird",
    "~/snap/firefox", "~/snap/chromium", "~/.var/app", "~/Library/Keychains",
    /* what was typed */
    "~/.bash_history", "~/.zsh_history", "~/.python_history", "~/.psql_history", "~/.mysql_history",
    "~/.node_repl_history",
    /* segue's own: configuration, logs, sockets */
    "~/.config/segue", "~/.local/state/segue", "/run/user",
    /* other people's */
    "/home", "/root", "/Users", NULL};

const char *const confine_root_secrets[] = {
    "/etc/shadow",    "/etc/shadow-",     "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssl/private", "/etc/ssh",     "/boot",         NULL};

const struct confine_cache confine_caches[] = {
    {"~/.cache", ""},       {"~/.local/share", NULL}, {"~/.npm", "npm"},
    {"~/.yarn", NULL},      {"~/.pnpm-store", NULL},  {"~/.bun", NULL},
    {"~/.deno", NULL},      {"~/.node-gyp", NULL},    {"~/.cargo", "cargo"},
    {"~/.rustup", NULL},    {"~/go", "go"},           {"~/.gradle", "gradle"},
    {"~/.m2", "mvn"},       {"~/.ivy2", NULL},        {"~/.sbt", NULL},
    {"~/.coursier", NULL},  {"~/.nuget", "dotnet"},   {"~/.dotnet", "dotnet"},
    {"~/.gem", NULL},       {"~/.bundle", NULL},      {"~/.composer", NULL},
    {"~/.cabal", NULL},     {"~/.stack", NULL},       {"~/.ghcup", NULL},
    {"~/.mix", NULL},       {"~/.hex", NULL},         {"~/.opam", NULL},
    {"~/.conan", NULL},     {"~/.conan2", NULL},      {"~/.ccache", NULL},
    {"~/.pub-cache", NULL}, {"~/.platformio", NULL},  {"~/.local/pipx", NULL},
    {NULL, NULL},
};
