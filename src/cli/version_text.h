#pragma once
/*
 * version_text: what `closedbook --version` says.
 */

#include "base/buf.h"

/* Version, commit and the libraries that are linked, a line each. */
void version_text(struct buf *buf) nonnull(1);
