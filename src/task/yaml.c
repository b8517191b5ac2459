#include "task/yaml.h"

#include <stdlib.h>
#include <yaml.h>

#include "base/term.h"

struct anchor {
    const char *name;
    struct node *node;
};

struct yaml_reader {
    yaml_parser_t parser;
    struct arena *arena;
    const struct origin *origin;
    struct problems *problems;
    struct anchor *anchors;
    size_t anchor_count, node_count, error_count;
    bool stopped; /* the rest cannot be read */
};

static void complain(struct yaml_reader *reader, struct mark mark, const char *message)
{
    reader->error_count++;
    problems_error(reader->problems, mark, NULL, "%s", message);
}

static struct node *stop(struct yaml_reader *reader, struct mark mark, const char *message)
{
    if (!reader->stopped)
        complain(reader, mark, message);
    reader->stopped = true;
    return NULL;
}

static struct mark mark_of(const struct yaml_reader *reader, yaml_mark_t mark)
{
    return (struct mark){reader->origin, (unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

/* The place of a byte, for complaints about the encoding. */
static struct mark mark_at(const struct origin *origin, size_t offset)
{
    struct mark mark = {origin, 1, 1};
    const char *text = origin->text;
    uint32_t rune;

    for (size_t i = 0; i < size_min(offset, origin->length);) {
        size_t size = utf8_next(text + i, origin->length - i, &rune);

        mark.line += text[i] == '\n';
        mark.column = text[i] == '\n' ? 1 : mark.column + 1;
        i += size == 0 ? 1 : size;
    }
    return mark;
}

static void stop_at_parser_error(struct yaml_reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem == NULL ? "cannot be read" : parser->problem;

    if (parser->error == YAML_READER_ERROR) {
        (void)stop(
            reader, mark_at(reader->origin, parser->problem_offset),
            arena_format(reader->arena, "%s (0x%02x)", problem, (unsigned)parser->problem_value));
        return;
    }
    const char *message = problem;

    if (parser->context != NULL)
        message =
            arena_format(reader->arena, "%s (%s that starts at %zu:%zu)", problem, parser->context,
                         parser->context_mark.line + 1, parser->context_mark.column + 1);
    (void)stop(reader, mark_of(reader, parser->problem_mark), message);
}

/* False: stopped. The event is the caller's. */
static bool next(struct yaml_reader *reader, yaml_event_t *event)
{
    if (reader->stopped)
        return false;
    if (yaml_parser_parse(&reader->parser, event) == 1)
        return true;
    stop_at_parser_error(reader);
    return false;
}

static struct node *count_in(struct yaml_reader *reader, struct node *node, struct mark mark)
{
    reader->node_count += node->weight;
    if (reader->node_count > TASK_NODES_MAX)
        return stop(reader, mark,
                    arena_format(reader->arena, "more than %d values (aliases counted where used)",
                                 TASK_NODES_MAX));
    return node;
}

static void refuse_tag(struct yaml_reader *reader, const yaml_char_t *tag, struct mark mark)
{
    if (tag != NULL)
        complain(reader, mark,
                 arena_format(reader->arena, "the tag '%.60s': tags are not supported",
                              (const char *)tag));
}

static void remember(struct yaml_reader *reader, const yaml_char_t *name, struct node *node)
{
    if (name == NULL)
        return;
    if (reader->anchor_count == YAML_ANCHORS_MAX) {
        (void)stop(reader, node->mark,
                   arena_format(reader->arena, "more than %d anchors", YAML_ANCHORS_MAX));
        return;
    }
    const char *text = (const char *)name;

    reader->anchors =
        arena_grow(reader->arena, reader->anchors, reader->anchor_count, sizeof(struct anchor));
    reader->anchors[reader->anchor_count++] =
        (struct anchor){arena_text(reader->arena, text, strlen(text)), node};
}

static struct node *read_alias(struct yaml_reader *reader, const yaml_event_t *event,
                               unsigned depth)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct mark mark = mark_of(reader, event->start_mark);

    for (size_t i = reader->anchor_count; i-- > 0;) {
        struct node *node = reader->anchors[i].node;

        if (strcmp(reader->anchors[i].name, name) != 0)
            continue;
        if (node->weight == 0)
            return stop(
                reader, mark,
                arena_format(reader->arena, "the alias '%.60s' is inside its own anchor", name));
        if (depth + node->height - 1 > TASK_DEPTH_MAX)
            return stop(
                reader, mark,
                arena_format(reader->arena, "nested deeper than %d levels", TASK_DEPTH_MAX));
        return count_in(reader, node, mark);
    }
    return stop(reader, mark,
                arena_format(reader->arena, "no anchor '%.60s' before this alias", name));
}

static struct node *read_scalar(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct mark mark = mark_of(reader, event->start_mark);
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    struct node *node = node_new(reader->arena, NODE_TEXT, mark);

    refuse_tag(reader, event->data.scalar.tag, mark);
    if (memchr(value, '\0', length) != NULL)
        complain(reader, mark, "a NUL character in a text");
    node->text = arena_text(reader->arena, value, length);
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->start = (unsigned)event->start_mark.index;
    node->end = (unsigned)event->end_mark.index;
    node_resolve(node);
    remember(reader, event->data.scalar.anchor, node);
    return count_in(reader, node, mark);
}

static struct node *read_value(struct yaml_reader *reader, const yaml_event_t *event,
                               unsigned depth);

static struct node *begin(struct yaml_reader *reader, const yaml_event_t *event, unsigned depth)
{
    struct mark mark = mark_of(reader, event->start_mark);
    bool is_map = event->type == YAML_MAPPING_START_EVENT;
    struct node *node = node_new(reader->arena, is_map ? NODE_MAP : NODE_LIST, mark);

    if (depth > TASK_DEPTH_MAX)
        return stop(reader, mark,
                    arena_format(reader->arena, "nested deeper than %d levels", TASK_DEPTH_MAX));
    refuse_tag(reader, is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag,
               mark);
    if (count_in(reader, node, mark) == NULL)
        return NULL;
    node->weight = 0;
    node->start = (unsigned)event->start_mark.index;
    node->end = (unsigned)event->end_mark.index;
    remember(reader, is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
             node);
    return node;
}

static void measure(struct node *node)
{
    node->weight = 1;
    for (size_t i = 0; i < node->count; i++) {
        const struct node *child = node->kind == NODE_MAP ? node->members[i].value : node->items[i];

        node->weight += child->weight + (node->kind == NODE_MAP);
        if (node->height <= child->height)
            node->height = child->height + 1;
    }
}

/* Of what an event began; an alias ends itself, not where its anchor does. */
static unsigned end_of(const struct node *node, const yaml_event_t *event)
{
    return event->type == YAML_ALIAS_EVENT ? (unsigned)event->end_mark.index : node->end;
}

/* A list or map in brackets ends behind them, another one behind the last thing in it. */
static void note_end(struct node *node, const yaml_event_t *start, const yaml_event_t *end)
{
    bool is_flow = node->kind == NODE_MAP
                       ? start->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                       : start->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;

    if (is_flow)
        node->end = (unsigned)end->end_mark.index;
}

static struct node *read_list(struct yaml_reader *reader, const yaml_event_t *start, unsigned depth)
{
    struct node *list = begin(reader, start, depth);

    while (list != NULL) {
        yaml_event_t event;

        if (!next(reader, &event))
            return NULL;
        bool at_end = event.type == YAML_SEQUENCE_END_EVENT;
        struct node *item = at_end ? NULL : read_value(reader, &event, depth + 1);

        if (at_end)
            note_end(list, start, &event);
        else if (item != NULL)
            list->end = end_of(item, &event);
        yaml_event_delete(&event);
        if (at_end) {
            measure(list);
            return list;
        }
        if (item == NULL)
            return NULL;
        list->items = arena_grow(reader->arena, list->items, list->count, sizeof(struct node *));
        list->items[list->count++] = item;
    }
    return NULL;
}

static void add_member(struct yaml_reader *reader, struct node *map, const struct member *member)
{
    map->members = arena_grow(reader->arena, map->members, map->count, sizeof(struct member));
    map->members[map->count++] = *member;
}

/* Appends the members of what `<<` names; explicit keys and earlier maps win later on. */
static void merge_in(struct yaml_reader *reader, struct node *map, const struct node *source)
{
    if (source->kind == NODE_LIST) {
        for (size_t i = 0; i < source->count && !reader->stopped; i++) {
            if (source->items[i]->kind == NODE_LIST)
                complain(reader, source->items[i]->mark,
                         "'<<' wants a map, found a list in a list");
            else
                merge_in(reader, map, source->items[i]);
        }
        return;
    }
    if (source->kind != NODE_MAP) {
        complain(reader, source->mark,
                 arena_format(reader->arena, "'<<' wants a map or a list of maps, found %s",
                              node_describe(reader->arena, source)));
        return;
    }
    for (size_t i = 0; i < source->count; i++) {
        struct member member = source->members[i];

        member.merged = true;
        if (count_in(reader, member.value, member.mark) == NULL)
            return;
        add_member(reader, map, &member);
    }
}

static int compare_members(const void *a, const void *b)
{
    const struct member *left = *(const struct member *const *)a;
    const struct member *right = *(const struct member *const *)b;
    int order = strcmp(left->key, right->key);

    if (order != 0)
        return order;
    return left < right ? -1 : left > right;
}

/* One member per key: an explicit second one is an error, a merged one gives way. */
static void settle_keys(struct yaml_reader *reader, struct node *map)
{
    const struct member **sorted =
        arena_new(reader->arena, map->count + 1, sizeof(const struct member *));
    bool *dropped = arena_new(reader->arena, map->count + 1, sizeof(bool));
    const struct member *first = NULL;

    for (size_t i = 0; i < map->count; i++)
        sorted[i] = &map->members[i];
    qsort(sorted, map->count, sizeof(sorted[0]), compare_members);
    for (size_t i = 0; i < map->count; i++) {
        const struct member *member = sorted[i];

        if (first == NULL || strcmp(first->key, member->key) != 0) {
            first = member;
            continue;
        }
        dropped[member - map->members] = true;
        if (!member->merged)
            complain(reader, member->mark,
                     arena_format(reader->arena, "the key '%.60s' is here twice, first at %u:%u",
                                  member->key, first->mark.line, first->mark.column));
    }
    size_t kept = 0;

    for (size_t i = 0; i < map->count; i++) {
        if (!dropped[i])
            map->members[kept++] = map->members[i];
    }
    map->count = kept;
}

/* The key of an event: any scalar, as written. NULL: stopped. */
static const char *read_key(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct mark mark = mark_of(reader, event->start_mark);

    if (event->type != YAML_SCALAR_EVENT && event->type != YAML_ALIAS_EVENT) {
        (void)stop(reader, mark, "a key must be a text");
        return NULL;
    }
    const struct node *key = read_value(reader, event, 1);

    if (key == NULL)
        return NULL;
    if (key->text == NULL) {
        (void)stop(reader, mark, "a key must be a text");
        return NULL;
    }
    return key->text;
}

static struct node *read_map(struct yaml_reader *reader, const yaml_event_t *start, unsigned depth)
{
    struct node *map = begin(reader, start, depth);
    const struct node *merged = NULL;

    while (map != NULL) {
        yaml_event_t event;

        if (!next(reader, &event))
            return NULL;
        if (event.type == YAML_MAPPING_END_EVENT) {
            note_end(map, start, &event);
            yaml_event_delete(&event);
            break;
        }
        struct member member = {.mark = mark_of(reader, event.start_mark),
                                .start = (unsigned)event.start_mark.index,
                                .end = (unsigned)event.end_mark.index};
        bool is_merge = event.type == YAML_SCALAR_EVENT &&
                        event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                        strcmp((const char *)event.data.scalar.value, "<<") == 0;

        member.key = read_key(reader, &event);
        yaml_event_delete(&event);
        if (member.key == NULL || !next(reader, &event))
            return NULL;
        member.value = read_value(reader, &event, depth + 1);
        if (member.value != NULL)
            map->end = end_of(member.value, &event);
        yaml_event_delete(&event);
        if (member.value == NULL)
            return NULL;
        if (!is_merge)
            add_member(reader, map, &member);
        else if (merged != NULL)
            complain(reader, member.mark, "the key '<<' is here twice");
        else
            merged = member.value;
    }
    if (map == NULL)
        return NULL;
    if (merged != NULL)
        merge_in(reader, map, merged);
    settle_keys(reader, map);
    measure(map);
    return reader->stopped ? NULL : map;
}

static struct node *read_value(struct yaml_reader *reader, const yaml_event_t *event,
                               unsigned depth)
{
    struct mark mark = mark_of(reader, event->start_mark);

    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(reader, event);
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(reader, event, depth);
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return read_list(reader, event, depth);
    if (event->type == YAML_MAPPING_START_EVENT)
        return read_map(reader, event, depth);
    return stop(reader, mark, "a value expected");
}

/* From the start of the stream to its end; exactly one document. */
static struct node *read_stream(struct yaml_reader *reader)
{
    struct node *root = NULL;
    unsigned document_count = 0;

    for (;;) {
        yaml_event_t event;

        if (!next(reader, &event))
            return NULL;
        yaml_event_type_t type = event.type;
        struct mark mark = mark_of(reader, event.start_mark);

        if (type == YAML_DOCUMENT_START_EVENT && ++document_count > 1)
            (void)stop(reader, mark, "a second document: one file holds one");
        else if (type == YAML_SCALAR_EVENT || type == YAML_ALIAS_EVENT ||
                 type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
            root = read_value(reader, &event, 1);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            break;
    }
    if (document_count == 0)
        (void)stop(reader, (struct mark){reader->origin, 0, 0}, "empty: no YAML document in it");
    return root;
}

static bool bytes_are_fine(struct yaml_reader *reader)
{
    const struct origin *origin = reader->origin;
    uint32_t rune;

    if (origin->length > TASK_BYTES_MAX) {
        complain(reader, (struct mark){origin, 0, 0},
                 arena_format(reader->arena, "larger than %zu bytes", TASK_BYTES_MAX));
        return false;
    }
    for (size_t i = 0; i < origin->length;) {
        size_t size = utf8_next(origin->text + i, origin->length - i, &rune);

        if (size == 0) {
            complain(reader, mark_at(origin, i),
                     arena_format(reader->arena, "not UTF-8: the byte 0x%02x",
                                  (unsigned)(unsigned char)origin->text[i]));
            return false;
        }
        i += size;
    }
    return true;
}

struct node *yaml_read(struct arena *arena, const struct origin *origin, struct problems *problems)
{
    struct yaml_reader reader = {.arena = arena, .origin = origin, .problems = problems};

    if (!bytes_are_fine(&reader))
        return NULL;
    /* A byte order mark is allowed at the start and nowhere else. */
    size_t skipped = origin->length >= 3 && memcmp(origin->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    ASSERT(yaml_parser_initialize(&reader.parser) == 1);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)origin->text + skipped,
                                 origin->length - skipped);
    struct node *root = read_stream(&reader);

    yaml_parser_delete(&reader.parser);
    return reader.error_count > 0 ? NULL : root;
}

const char *yaml_library_version(void)
{
    return yaml_get_version_string();
}
