#pragma once
/*
 * leaks: what of the private half stands in texts that the agent can read, or has read or left.
 *
 * A leak is one private file and one place in which enough of it was found. It is severe when the
 * place has a third of the file; the measured rates behind the limits are in docs/evidence.md.
 * Texts are looked at as they are and in all their readings (readings.h). Depends on: base.
 */

#include "base/json.h"
#include "evidence/fingerprint.h"
#include "evidence/readings.h"

#define LEAK_RUN_CHARS 52      /* a run of so many counted characters is worth telling */
#define LEAK_SEVERE_PERCENT 30 /* of a file's fingerprints, when it has LEAK_SMALL or more */
#define LEAK_SMALL 5           /* a file of fewer fingerprints is told, but never severe */
#define LEAK_ID_CHARS 12
#define LEAKS_MAX 1000 /* that are listed; the counts go on */

struct leak {
    char *id; /* 12 digits of hexadecimal, the same for the same file and place; owned */
    char *place;
    char *how;   /* the reading that showed it, as in readings.h; NULL: as it is */
    size_t file; /* of the index */
    size_t found, all, run_chars;
    size_t run_offset, run_bytes; /* of the longest run, in the private file's text */
    bool severe;
};

struct leaks {
    struct leak *items;
    size_t count;          /* listed */
    size_t severe_count;   /* of all, listed or not */
    size_t dropped;        /* not listed */
    size_t severe_dropped; /* of these; then all that are listed are severe */
    uint64_t places, bytes;
};
void leaks_done(struct leaks *leaks) nonnull(1);

struct leak_search; /* opaque: an index, and what opens archives */

/* Borrows the sealed index and context. unpack as in readings.h; NULL: archives stay closed. */
struct leak_search *leak_search_new(const struct fingerprint_index *index,
                                    int (*unpack)(void *context, const char *bytes, size_t size,
                                                  struct buf *ret, struct error **err),
                                    void *context) malloc_like nonnull(1);
void leak_search_free(struct leak_search *search);
void leak_search_freep(struct leak_search **search);

/* A text of a place: name it as people find it. What the text gave away goes to *leaks. */
must_check int leak_search_text(struct leak_search *search, const char *place, const char *text,
                                size_t size, struct leaks *leaks, struct error **err)
    nonnull(1, 2, 3, 5);
/*
 * What an author wrote himself is none of what reached him: everything in this text is left out of
 * later searches.
 */
must_check int leak_search_except(struct leak_search *search, const char *text, size_t size,
                                  struct error **err) nonnull(1, 2);

/* The same, of everything in another search's places, told or not. */
void leak_search_except_seen(struct leak_search *search, const struct fingerprint_marks *seen)
    nonnull(1, 2);
/* All marks of the places so far; the caller's. */
struct fingerprint_marks *leak_search_take_seen(struct leak_search *search) nonnull(1);

/* {places, bytes, private_files, fingerprints, severe, dropped, findings: [...]}, without any
 * private text; new reference. */
json_t *leaks_to_json(const struct leaks *leaks, const struct fingerprint_index *index)
    nonnull(1, 2);
/* One finding in words, without private text: "'a.py' has 34 % of 'reference/a.py'"; owned. */
char *leak_describe(const struct leak *leak, const struct fingerprint_index *index) nonnull(1, 2);
