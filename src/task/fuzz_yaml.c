/*
 * Any bytes as YAML: accepted xor complained, within the limits of yaml.h, every node in its place.
 */
#include "task/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Counts what a walk through all aliases sees; the limits must hold for it. */
static size_t walk(const struct node *node, const struct origin *origin, unsigned depth)
{
    size_t count = 1;

    ASSERT(depth <= TASK_DEPTH_MAX);
    ASSERT(node->mark.origin == origin && node->mark.line >= 1 && node->mark.column >= 1);
    ASSERT(node->height >= 1 && node->weight >= 1);
    if (node->kind != NODE_LIST && node->kind != NODE_MAP) {
        ASSERT(node->text != NULL && node->count == 0);
        return 1;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct node *child = node->kind == NODE_MAP ? node->members[i].value : node->items[i];

        ASSERT(child->height < node->height);
        count += walk(child, origin, depth + 1);
    }
    for (size_t i = 1; node->kind == NODE_MAP && i < node->count && node->count < 100; i++) {
        for (size_t j = 0; j < i; j++)
            ASSERT(strcmp(node->members[i].key, node->members[j].key) != 0);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(arena_done) struct arena arena = {0};
    scoped(problems_done) struct problems problems = {0};
    struct origin origin = {
        .source = "task", .file = "f", .text = (const char *)data, .length = size};
    const struct node *root = yaml_read(&arena, &origin, &problems);

    ASSERT((root == NULL) == (problems.error_count > 0));
    if (root == NULL)
        return 0;
    ASSERT(walk(root, &origin, 1) <= TASK_NODES_MAX);
    scoped(json_freep) json_t *json = node_to_json(root);

    ASSERT(json != NULL);
    return 0;
}
