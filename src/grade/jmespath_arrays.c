#include <math.h>

#include "base/mem.h"
#include "grade/jmespath_internal.h"

/* Functions over arrays. */

/* --- sums ------------------------------------------------------------------------------------ */

/* json has no infinity: a sum beyond the range of numbers fails the evaluation. */
static json_t *real_number(struct evaluation *evaluation, double real)
{
    if (!isfinite(real))
        return evaluation_fail(evaluation, "the result is beyond the range of numbers");
    return json_made(json_real(real));
}

json_t *call_sum(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    const json_t *array = arguments[0].value;
    bool exact = true;
    int64_t whole = 0;
    double real = 0;

    (void)count;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *number = json_array_get(array, i);

        real += json_number_value(number);
        if (!json_is_integer(number) ||
            __builtin_add_overflow(whole, json_integer_value(number), &whole))
            exact = false;
    }
    return exact ? json_made(json_integer(whole)) : real_number(evaluation, real);
}

json_t *call_avg(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    const json_t *array = arguments[0].value;
    size_t size = json_array_size(array);
    double sum = 0;

    (void)count;
    if (size == 0)
        return json_null();
    for (size_t i = 0; i < size; i++)
        sum += json_number_value(json_array_get(array, i));
    return real_number(evaluation, sum / (double)size);
}

/* --- strings and turned arrays --------------------------------------------------------------- */

json_t *call_join(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    const json_t *glue = arguments[0].value, *array = arguments[1].value;
    scoped(buf_done) struct buf text = {0};

    (void)count;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *part = json_array_get(array, i);
        size_t bytes = json_string_length(glue) + json_string_length(part);

        if (!evaluation_step(evaluation, 1 + bytes / 64))
            return NULL;
        if (i > 0)
            buf_append(&text, json_string_value(glue), json_string_length(glue));
        buf_append(&text, json_string_value(part), json_string_length(part));
    }
    return json_made(json_stringn(buf_text(&text), text.size_bytes));
}

static json_t *reverse_string(const json_t *value)
{
    const char *s = json_string_value(value);
    size_t end = json_string_length(value);
    scoped(buf_done) struct buf text = {0};

    while (end > 0) {
        size_t start = end - 1;

        while (start > 0 && ((unsigned char)s[start] & 0xC0) == 0x80)
            start--;
        buf_append(&text, s + start, end - start);
        end = start;
    }
    return json_made(json_stringn(buf_text(&text), text.size_bytes));
}

json_t *call_reverse(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    const json_t *value = arguments[0].value;
    bool is_string = json_is_string(value);

    (void)count;
    if (!evaluation_step(evaluation,
                         is_string ? json_string_length(value) / 16 : json_array_size(value)))
        return NULL;
    if (is_string)
        return reverse_string(value);
    json_t *reversed = json_made(json_array());

    for (size_t i = json_array_size(value); i > 0; i--)
        json_push(reversed, json_incref(json_array_get(value, i - 1)));
    return reversed;
}

json_t *call_map(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    json_t *array = arguments[1].value;
    scoped(json_freep) json_t *result = json_made(json_array());

    (void)count;
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *element =
            jmespath_node_evaluate(evaluation, arguments[0].expression, json_array_get(array, i));

        if (element == NULL)
            return NULL;
        json_push(result, element);
    }
    return take(result);
}

/* --- order ----------------------------------------------------------------------------------- */

/* One element with what it is ordered by; index keeps the order of equals. */
struct keyed {
    json_t *element; /* borrowed */
    json_t *key;     /* owned */
    size_t index;
};

struct keyed_list {
    struct keyed *items;
    size_t count;
};

static void keyed_list_done(struct keyed_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        json_decref(list->items[i].key);
    free(list->items);
}

static int compare_values(const json_t *a, const json_t *b)
{
    return json_is_string(a) ? value_compare_strings(a, b) : value_compare_numbers(a, b);
}

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int order = compare_values(x->key, y->key);

    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Keys are all numbers or all strings. */
static bool check_key(struct evaluation *evaluation, const struct keyed_list *list,
                      const json_t *key)
{
    const json_t *first = list->items[0].key;

    if (json_is_string(key) && (list->count == 0 || json_is_string(first)))
        return true;
    if (json_is_number(key) && (list->count == 0 || json_is_number(first)))
        return true;
    scoped(buf_done) struct buf text = {0};

    value_show(&text, key, 80);
    (void)evaluation_fail(evaluation, "element %zu is ordered by %s, expected a %s", list->count,
                          buf_text(&text),
                          list->count == 0 ? "number or a string" : value_type_name(first));
    return false;
}

/* Fills list with the elements of array and the expression's value of each, or themselves. */
static bool add_keys(struct evaluation *evaluation, json_t *array, const struct node *expression,
                     struct keyed_list *list)
{
    size_t size = json_array_size(array);

    list->items = mem_new(size + 1, sizeof(*list->items));
    for (size_t i = 0; i < size; i++) {
        json_t *element = json_array_get(array, i);
        scoped(json_freep) json_t *key = NULL;

        if (!evaluation_step(evaluation, 4))
            return false;
        key = expression == NULL ? json_incref(element)
                                 : jmespath_node_evaluate(evaluation, expression, element);
        if (key == NULL || !check_key(evaluation, list, key))
            return false;
        list->items[list->count++] =
            (struct keyed){.element = element, .key = take(key), .index = i};
    }
    return true;
}

static json_t *sorted(struct evaluation *evaluation, json_t *array, const struct node *expression)
{
    scoped(keyed_list_done) struct keyed_list list = {0};

    if (!add_keys(evaluation, array, expression, &list))
        return NULL;
    qsort(list.items, list.count, sizeof(*list.items), compare_keyed);
    json_t *result = json_made(json_array());

    for (size_t i = 0; i < list.count; i++)
        json_push(result, json_incref(list.items[i].element));
    return result;
}

json_t *call_sort(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    (void)count;
    return sorted(evaluation, arguments[0].value, NULL);
}

json_t *call_sort_by(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    (void)count;
    return sorted(evaluation, arguments[0].value, arguments[1].expression);
}

/* The first element that no other one beats in the direction (1: greatest, -1: least). */
static json_t *extreme(struct evaluation *evaluation, const struct argument *arguments,
                       const struct node *expression, int direction)
{
    scoped(keyed_list_done) struct keyed_list list = {0};

    if (!add_keys(evaluation, arguments[0].value, expression, &list))
        return NULL;
    if (list.count == 0)
        return json_null();
    const struct keyed *best = &list.items[0];

    for (size_t i = 1; i < list.count; i++) {
        if (compare_values(list.items[i].key, best->key) * direction > 0)
            best = &list.items[i];
    }
    return json_incref(best->element);
}

json_t *call_max(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    (void)count;
    return extreme(evaluation, arguments, NULL, 1);
}

json_t *call_min(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    (void)count;
    return extreme(evaluation, arguments, NULL, -1);
}

json_t *call_max_by(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    (void)count;
    return extreme(evaluation, arguments, arguments[1].expression, 1);
}

json_t *call_min_by(struct evaluation *evaluation, const struct argument *arguments, size_t count)
{
    (void)count;
    return extreme(evaluation, arguments, arguments[1].expression, -1);
}
