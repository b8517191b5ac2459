#pragma once
/*
 * internal: what the files of cli/ share.
 */

#include "cli/options.h"

/* --help, --quiet and --verbose, which every command has. Their fields are in struct arguments. */
#define COMMON_OPTION_COUNT 3
extern const struct cli_option common_options[COMMON_OPTION_COUNT];

/* The i-th option of a command, its own first, then the common ones; NULL past the end. */
const struct cli_option *options_at(const struct command *command, size_t i) nonnull(1);
