#pragma once
/*
 * node: a tree of values as a file or a flag gave it, each with the place it came from.
 *
 * Nodes live in an arena and may be shared (aliases), so nobody changes a node that another made.
 * Depends on: base, arena, problems.
 */

#include "base/json.h"
#include "task/arena.h"
#include "task/problems.h"

enum node_kind { NODE_NULL, NODE_BOOL, NODE_INT, NODE_REAL, NODE_TEXT, NODE_LIST, NODE_MAP };

struct node;

struct member {
    const char *key;
    struct mark mark; /* of the key */
    struct node *value;
    bool merged;         /* by `<<` */
    unsigned start, end; /* of the key, as node.start and node.end */
};

struct node {
    enum node_kind kind;
    bool plain;      /* a scalar without quotes */
    unsigned height; /* levels, 1 for a scalar */
    size_t weight;   /* nodes in it after alias expansion; 0 while it is being read */
    struct mark mark;
    /* Characters before it and up to its end in the file, a byte order mark not counted; 0 and 0:
     * not from a file. Quotes and brackets are in it, comments behind it are not. */
    unsigned start, end;
    const char *text; /* scalars: as written */
    union {
        bool truth;
        int64_t integer;
        double real;
    };
    struct node **items;    /* NODE_LIST */
    struct member *members; /* NODE_MAP */
    size_t count;
};

/* Gives a scalar its kind and value by the core rules of YAML 1.2 (plain false: text). */
void node_resolve(struct node *node) nonnull(1);
/* "a text", "the number 42", "a list" ...: what a complaint says was found; in the arena. */
const char *node_describe(struct arena *arena, const struct node *node) nonnull(1, 2);

/* New nodes, marked as given. */
struct node *node_new(struct arena *arena, enum node_kind kind, struct mark mark) nonnull(1);
struct node *node_new_text(struct arena *arena, const char *text, struct mark mark) nonnull(1, 2);
struct node *node_new_plain(struct arena *arena, const char *text, struct mark mark) nonnull(1, 2);
void node_add_item(struct arena *arena, struct node *list, struct node *item) nonnull(1, 2, 3);
/* Replaces a member of that key, else appends it. */
void node_put(struct arena *arena, struct node *map, const struct member *member) nonnull(1, 2, 3);

/* The value of a key; NULL when map is NULL, no map, or has none. */
struct node *node_get(const struct node *map, const char *key) nonnull(2);
const struct member *node_member(const struct node *map, const char *key) nonnull(2);
/* "a.b.c" below map. */
struct node *node_find(const struct node *map, const char *path) nonnull(2);
/* The text of a text member, NULL otherwise. */
const char *node_get_text(const struct node *map, const char *key) nonnull(2);
/* INT or REAL as a real; otherwise the given number. */
double node_get_real(const struct node *map, const char *key, double otherwise) nonnull(2);
bool node_get_bool(const struct node *map, const char *key) nonnull(2);

/* New reference. Numbers that JSON lacks become null. */
json_t *node_to_json(const struct node *node) nonnull(1);
