#pragma once
/*
 * tools: what the CLIs call their tools, in the names that criteria use (docs/formats/events.md).
 */

#include "agent/stream.h"

/*
 * The canonical name of a tool that a CLI of this kind declares to the model or prints, name itself
 * when it has none.
 */
const char *tool_canonical(enum stream_kind kind, const char *name) nonnull(2);
