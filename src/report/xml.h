#pragma once
/*
 * xml: raw text into XML 1.0: first made visible as for a terminal, then escaped.
 */

#include "base/buf.h"

/* Inside an attribute: one line. */
void xml_attribute(struct buf *buf, const char *raw) nonnull(1, 2);
/* Element content: lines and tabs stay. */
void xml_content(struct buf *buf, const char *raw, size_t size) nonnull(1, 2);
