/* Which function a call means: the first row of its name whose signature fits at the least cost. */
#include "sql/analyze/analyze_private.h"
#include "sql/analyze/signature.h"

#include <ctype.h>
#include <limits.h>
#include <strings.h>

/* --- one signature --- */

struct match {
    const struct binding *binding;
    struct argument *arguments;
    size_t count;
    struct signature signature;
    struct letters letters;
    const struct pattern **patterns; /* of each argument */
};

/* Which pattern each argument has; false if there are too many or too few. */
static bool assign_patterns(struct match *match)
{
    const struct pattern *pattern = match->signature.args;
    for (size_t i = 0; i < match->count; i++) {
        if (pattern == NULL)
            return false;
        match->patterns[i] = pattern;
        if (!pattern->is_repeated)
            pattern = pattern->next;
    }
    bool was_repeated = pattern != NULL && pattern->is_repeated && match->count > 0 &&
                        match->patterns[match->count - 1] == pattern;
    return pattern == NULL || pattern->is_optional || was_repeated;
}

static size_t count_names(const struct ast_name *names)
{
    size_t count = 0;
    for (; names != NULL; names = names->next)
        count++;
    return count;
}

static size_t count_lambda_parts(const struct pattern *pattern)
{
    size_t count = 0;
    for (const struct pattern *part = pattern->parts; part->next != NULL; part = part->next)
        count++;
    return count;
}

/* Lambdas, parts and others each stand where their pattern does. */
static bool kinds_fit(const struct match *match)
{
    for (size_t i = 0; i < match->count; i++) {
        const struct pattern *pattern = match->patterns[i];
        const struct argument *argument = &match->arguments[i];
        bool is_lambda = pattern->kind == PATTERN_LAMBDA;
        if (is_lambda != (argument->expr == NULL) ||
            (pattern->kind == PATTERN_PART) != argument->is_part ||
            (is_lambda && count_names(argument->ast->name) != count_lambda_parts(pattern)))
            return false;
    }
    return true;
}

/* The letter that an argument stands for by itself, or as the elements of an array; 0: none. */
static char letter_of(const struct pattern *pattern)
{
    if (pattern->kind == PATTERN_ARRAY)
        pattern = pattern->parts;
    return pattern->kind == PATTERN_ANY ? pattern->letter : '\0';
}

static bool has_letters(const struct pattern *pattern)
{
    bool has_any = pattern->kind == PATTERN_ANY;
    for (const struct pattern *part = pattern->parts; part != NULL && !has_any; part = part->next)
        has_any = has_letters(part);
    return has_any;
}

/* Whether there are letters that only the argument's type as a whole can tell: ARRAY<STRUCT<T>>. */
static bool hides_letters(const struct pattern *pattern)
{
    return letter_of(pattern) == '\0' && has_letters(pattern);
}

/* Letters within other types: ARRAY<T>. */
static bool unify_composites(struct match *match)
{
    for (size_t i = 0; i < match->count; i++) {
        const struct pattern *pattern = match->patterns[i];
        bool is_composite = pattern->kind == PATTERN_ARRAY || pattern->kind == PATTERN_MAP ||
                            pattern->kind == PATTERN_STRUCT;
        if (!is_composite)
            continue;
        const struct sql_expr *expr = match->arguments[i].expr;
        bool may_coerce = expr->is_literal && !hides_letters(pattern);
        if (!is_null_literal(expr) && !is_empty_literal(expr) && !may_coerce &&
            !pattern_unify(pattern, expr->type, &match->letters))
            return false;
    }
    return true;
}

/* Expressions that must have the letter's type: arguments, and elements of arrays that are written
 * as literals. At most `room` go into `exprs`; all are counted. */
static size_t exprs_of_letter(const struct match *match, char letter, const struct sql_expr **exprs,
                              size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < match->count; i++) {
        const struct sql_expr *expr = match->arguments[i].expr;
        bool is_array = match->patterns[i]->kind == PATTERN_ARRAY;
        if (expr == NULL || letter_of(match->patterns[i]) != letter)
            continue;
        if (!is_array && count++ < room)
            exprs[count - 1] = expr;
        for (size_t k = 0; is_array && expr->is_literal && k < expr->arg_count; k++)
            if (count++ < room)
                exprs[count - 1] = expr->args[k];
    }
    return count;
}

/* The common type of all that the letter stands for, unless another type had it in it. */
static status unify_letter(struct match *match, char letter, bool *fits)
{
    const struct sql_type **known = letter_type(&match->letters, letter);
    size_t count = exprs_of_letter(match, letter, NULL, 0);
    const struct sql_expr **exprs =
        arena_alloc(match->binding->analyzer->arena, count * sizeof *exprs);
    if (exprs == NULL)
        return status_out_of_memory();
    exprs_of_letter(match, letter, exprs, count);
    if (*known == NULL)
        *known = common_type(exprs, count); /* of [] and NULL: INT64 */
    *fits = *known != NULL;
    for (size_t i = 0; i < count && *fits; i++)
        *fits = coercion_cost(exprs[i], *known) >= 0;
    return status_ok();
}

/* Each letter once: there may be 100,000 arguments of one. */
static status unify_letters(struct match *match, bool *fits)
{
    uint32_t done = 0;
    *fits = true;
    for (size_t i = 0; i < match->count && *fits; i++) {
        char letter = letter_of(match->patterns[i]);
        uint32_t bit = letter == '\0' ? 0 : UINT32_C(1) << (letter - 'A');
        if (bit != 0 && (done & bit) == 0)
            TRY(unify_letter(match, letter, fits));
        done |= bit;
    }
    return status_ok();
}

static bool is_within(const struct sql_type *type, enum pattern_bound bound)
{
    switch (bound) {
    case BOUND_EQUALITY:
        return sql_type_has_equality(type);
    case BOUND_ORDER:
        return sql_type_has_order(type);
    case BOUND_ORDERABLE:
        return sql_type_is_orderable(type);
    case BOUND_GROUPABLE:
        return sql_type_is_groupable(type);
    case BOUND_ELEMENT:
        return type->kind != SQL_ARRAY;
    default:
        return true;
    }
}

/* Also of the letters within: ARRAY<T:equality>. */
static bool bound_holds(const struct match *match, const struct pattern *pattern)
{
    if (pattern->kind == PATTERN_ANY) {
        const struct sql_type *type = match->letters.types[pattern->letter - 'A'];
        return type == NULL || is_within(type, pattern->bound);
    }
    bool holds = true;
    bool is_composite = pattern->kind != PATTERN_LAMBDA;
    for (const struct pattern *part = pattern->parts; is_composite && part != NULL && holds;
         part = part->next)
        holds = bound_holds(match, part);
    return holds;
}

static bool bounds_hold(const struct match *match)
{
    for (size_t i = 0; i < match->count; i++)
        if (!bound_holds(match, match->patterns[i]))
            return false;
    return true;
}

/* --- lambdas --- */

static const struct pattern *lambda_result(const struct pattern *pattern)
{
    const struct pattern *part = pattern->parts;
    while (part->next != NULL)
        part = part->next;
    return part;
}

static status lambda_types(struct match *match, const struct pattern *pattern, size_t count,
                           const struct sql_type ***out)
{
    struct arena *arena = match->binding->analyzer->arena;
    const struct pattern *part = pattern->parts;
    *out = arena_alloc(arena, count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++, part = part->next)
        TRY(pattern_type(part, &match->letters, arena, &(*out)[i]));
    return status_ok();
}

static status bind_body(struct match *match, const struct ast_expr *ast,
                        const struct pattern *pattern, const struct sql_expr **out)
{
    struct analyzer *analyzer = match->binding->analyzer;
    const struct lambda_scope *outer = match->binding->lambda;
    struct lambda_scope scope = {.outer = outer, .names = ast->name};
    const struct sql_type **types;
    scope.count = count_lambda_parts(pattern);
    scope.first = outer == NULL ? 0 : outer->first + outer->count;
    TRY(lambda_types(match, pattern, scope.count, &types));
    scope.types = types;
    if (scope.first + scope.count > analyzer->argument_count)
        analyzer->argument_count = scope.first + scope.count;
    struct binding inner = *match->binding;
    inner.lambda = &scope;
    const struct sql_expr *body;
    TRY(bind_expr(&inner, ast->operands, &body));
    struct sql_expr *lambda = new_bound(analyzer, SQL_LAMBDA, ast->at, body->type);
    const struct sql_expr **args = arena_alloc(analyzer->arena, sizeof *args);
    if (lambda == NULL || args == NULL)
        return status_out_of_memory();
    args[0] = body;
    lambda->index = scope.first;
    lambda->arity = scope.count;
    *out = lambda;
    return set_args(analyzer, lambda, args, 1);
}

/* Binds the lambdas among the arguments, whose own arguments' types are known by now. */
static status bind_lambdas(struct match *match, bool *fits)
{
    for (size_t i = 0; i < match->count && *fits; i++) {
        const struct pattern *pattern = match->patterns[i];
        struct argument *argument = &match->arguments[i];
        if (pattern->kind != PATTERN_LAMBDA)
            continue;
        const struct sql_expr *lambda;
        TRY(bind_body(match, argument->ast, pattern, &lambda));
        const struct pattern *result = lambda_result(pattern);
        *fits = pattern_unify(result, lambda->type, &match->letters) &&
                is_within(lambda->type, result->bound);
        argument->bound_lambda = lambda;
    }
    return status_ok();
}

/* --- the result --- */

static status coerce_arguments(struct match *match, struct resolved *out)
{
    struct arena *arena = match->binding->analyzer->arena;
    const struct sql_expr **args = arena_alloc(arena, match->count * sizeof *args);
    if (args == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < match->count; i++) {
        const struct argument *argument = &match->arguments[i];
        const struct sql_type *type;
        args[i] = argument->expr == NULL ? argument->bound_lambda : argument->expr;
        if (argument->expr == NULL || argument->is_part)
            continue;
        TRY(pattern_type(match->patterns[i], &match->letters, arena, &type));
        TRY(coerce(match->binding, argument->expr, type, &args[i]));
    }
    *out = (struct resolved){.args = args, .arg_count = match->count};
    return pattern_type(match->signature.result, &match->letters, arena, &out->type);
}

static status cost_of(struct match *match, bool *fits, int *cost)
{
    *cost = 0;
    for (size_t i = 0; i < match->count && *fits; i++) {
        const struct argument *argument = &match->arguments[i];
        const struct sql_type *type;
        if (argument->expr == NULL || argument->is_part)
            continue;
        TRY(pattern_type(match->patterns[i], &match->letters, match->binding->analyzer->arena,
                         &type));
        int one = type == NULL ? -1 : coercion_cost(argument->expr, type);
        *fits = one >= 0;
        *cost += one;
    }
    return status_ok();
}

/* Reads the signature and holds it against the arguments. */
static status try_signature(struct match *match, const char *text, bool *fits, int *cost)
{
    struct arena *arena = match->binding->analyzer->arena;
    *fits = false;
    TRY(signature_read(text, arena, &match->signature));
    match->letters = (struct letters){0};
    match->patterns = arena_alloc(arena, match->count * sizeof *match->patterns);
    if (match->patterns == NULL)
        return status_out_of_memory();
    if (!assign_patterns(match) || !kinds_fit(match) || !unify_composites(match))
        return status_ok();
    TRY(unify_letters(match, fits));
    if (*fits)
        *fits = bounds_hold(match);
    return *fits ? cost_of(match, fits, cost) : status_ok();
}

status match_signature(const struct binding *binding, const char *signature,
                       struct argument *arguments, size_t count, bool *fits, int *cost,
                       struct resolved *out)
{
    struct match match = {.binding = binding, .arguments = arguments, .count = count};
    TRY(try_signature(&match, signature, fits, cost));
    if (!*fits || out == NULL)
        return status_ok();
    TRY(bind_lambdas(&match, fits));
    return *fits ? coerce_arguments(&match, out) : status_ok();
}

bool signature_has_part(const char *signature, size_t index)
{
    const char *at = strchr(signature, '(') + 1;
    for (int depth = 0; *at != '\0' && index > 0; at++) {
        depth += (*at == '(' || *at == '<') - (*at == ')' || *at == '>');
        index -= *at == ',' && depth == 0;
    }
    at += strspn(at, " [");
    return strncmp(at, "PART", 4) == 0;
}

/* --- the tables --- */

const struct sql_function *function_at(const char *name, size_t *row)
{
    size_t tables;
    const struct sql_function *const *table = sql_function_tables(&tables);
    size_t at = 0;
    for (size_t i = 0; i < tables; i++)
        for (const struct sql_function *f = table[i]; f->name != NULL; f++, at++)
            if (at >= *row && strcasecmp(f->name, name) == 0) {
                *row = at + 1;
                return f;
            }
    return NULL;
}

const struct sql_aggregate *aggregate_at(const char *name, size_t *row)
{
    size_t tables;
    const struct sql_aggregate *const *table = sql_aggregate_tables(&tables);
    size_t at = 0;
    for (size_t i = 0; i < tables; i++)
        for (const struct sql_aggregate *f = table[i]; f->name != NULL; f++, at++)
            if (at >= *row && strcasecmp(f->name, name) == 0) {
                *row = at + 1;
                return f;
            }
    return NULL;
}

/* --- errors --- */

/* What a message calls it: operators have names that begin with `$`. */
static const char *operator_words(const char *name)
{
    static const char *const words[][2] = {
        {"$add", "+"},
        {"$subtract", "-"},
        {"$multiply", "*"},
        {"$divide", "/"},
        {"$concat", "||"},
        {"$negate", "-"},
        {"$bit_not", "~"},
        {"$bit_and", "&"},
        {"$bit_or", "|"},
        {"$bit_xor", "^"},
        {"$shift_left", "<<"},
        {"$shift_right", ">>"},
        {"$equal", "="},
        {"$not_equal", "!="},
        {"$less", "<"},
        {"$less_equal", "<="},
        {"$greater", ">"},
        {"$greater_equal", ">="},
        {"$like", "LIKE"},
        {"$like_any", "LIKE ANY"},
        {"$like_all", "LIKE ALL"},
        {"$between", "BETWEEN"},
        {"$in", "IN"},
        {"$in_array", "IN UNNEST"},
        {"$not", "NOT"},
        {"$is_null", "IS NULL"},
        {"$is_true", "IS TRUE"},
        {"$is_false", "IS FALSE"},
        {"$is_distinct", "IS DISTINCT FROM"},
        {"$extract", "EXTRACT"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], name) == 0)
            return words[i][1];
    return name + 1;
}

static void append_argument_type(struct buffer *out, const struct argument *argument)
{
    bool is_null = argument->expr != NULL && is_null_literal(argument->expr);
    if (argument->expr == NULL)
        buffer_append_format(out, "LAMBDA");
    else if (argument->is_part)
        buffer_append_format(out, "DATE_TIME_PART");
    else if (is_null)
        buffer_append_format(out, "NULL");
    else
        sql_type_append(out, argument->expr->type);
}

/* GoogleSQL's advice for a comparison of _key with a string. */
static const char *advice(const char *name, const struct argument *arguments, size_t count)
{
    bool compares = strcmp(name, "$equal") == 0 || strcmp(name, "$not_equal") == 0;
    if (!compares || count != 2 || arguments[0].expr == NULL || arguments[1].expr == NULL)
        return "";
    enum sql_kind a = arguments[0].expr->type->kind;
    enum sql_kind b = arguments[1].expr->type->kind;
    bool mixes = (a == SQL_STRING && b == SQL_BYTES) || (a == SQL_BYTES && b == SQL_STRING);
    return mixes ? ". STRING and BYTES are different types that are not directly comparable. To "
                   "write a BYTES literal, use a b-prefixed literal such as b'bytes value'"
                 : "";
}

static void append_name(struct buffer *out, const char *name)
{
    if (name[0] == '$')
        buffer_append_format(out, "operator %s", operator_words(name));
    else
        buffer_append_format(out, "%sfunction ",
                             is_aggregate_function(name) ? "aggregate "
                             : is_window_function(name)  ? "analytic "
                                                         : "");
    for (; name[0] != '$' && *name != '\0'; name++)
        buffer_append_byte(out, (uint8_t)toupper((unsigned char)*name));
}

struct status_detail *no_matching_detail(const struct binding *binding, const char *name,
                                         uint32_t at, const struct argument *arguments,
                                         size_t count)
{
    struct buffer words = {0};
    append_name(&words, name);
    buffer_append_format(&words, count == 0 ? " with no arguments" : " for argument type%s: ",
                         count == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(&words, "%s", i == 0 ? "" : ", ");
        append_argument_type(&words, &arguments[i]);
    }
    buffer_append_format(&words, "%s", advice(name, arguments, count));
    buffer_append_byte(&words, '\0');
    struct status_detail *detail =
        words.failed ? NULL
                     : sql_error_detail(binding->analyzer->analysis->text, at,
                                        "No matching signature for %s", (char *)words.data);
    buffer_free(&words);
    return detail;
}

/* The least number of letters to change, add or leave out; not exact beyond what is near. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    size_t columns[LONGEST + 1];
    size_t length = strlen(b);
    if (length > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= length; j++)
        columns[j] = j;
    for (size_t i = 1; *a != '\0'; a++, i++) {
        size_t diagonal = columns[0];
        columns[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t change =
                diagonal + (tolower((unsigned char)*a) != tolower((unsigned char)b[j - 1]));
            size_t other = (columns[j] < columns[j - 1] ? columns[j] : columns[j - 1]) + 1;
            diagonal = columns[j];
            columns[j] = change < other ? change : other;
        }
    }
    return columns[length];
}

void suggest(struct suggestion *suggestion, const char *candidate)
{
    size_t most = (strlen(suggestion->wanted) + 4) / 5; /* a fifth of the letters */
    size_t letters = distance(suggestion->wanted, candidate);
    if (candidate[0] != '$' && letters <= most &&
        (suggestion->best == NULL || letters < suggestion->distance)) {
        suggestion->best = candidate;
        suggestion->distance = letters;
    }
}

/* --- calls --- */

static status make_call(const struct binding *binding, const struct sql_function *function,
                        uint32_t at, const struct resolved *resolved, bool is_safe,
                        const struct sql_expr **out)
{
    struct analyzer *analyzer = binding->analyzer;
    struct sql_expr *call = new_bound(analyzer, SQL_CALL, at, resolved->type);
    if (call == NULL)
        return status_out_of_memory();
    call->function = function;
    call->is_safe = is_safe;
    call->call = analyzer->call_count++;
    TRY(set_args(analyzer, call, resolved->args, resolved->arg_count));
    *out = fold_constant(analyzer, call);
    return status_ok();
}

static status unfit_part(const struct binding *binding, const struct sql_function *function,
                         uint32_t at, enum sql_part part, const struct resolved *resolved)
{
    bytes text = binding->analyzer->analysis->text;
    const char *type = "DATE";
    for (size_t i = 0; i < resolved->arg_count; i++)
        if (resolved->args[i]->type->kind == SQL_TIMESTAMP)
            type = "TIMESTAMP";
    if (strcmp(function->name, "$extract") == 0)
        return sql_error(text, at, "EXTRACT from %s does not support the %s date part", type,
                         sql_part_name(part));
    return sql_error(text, at, "%s does not support the %s date part when the argument is %s type",
                     function->name, sql_part_name(part), type);
}

/* Whether the function can do something with the parts it is given. */
static status check_parts(const struct binding *binding, const struct sql_function *function,
                          uint32_t at, const struct argument *arguments,
                          const struct resolved *resolved)
{
    for (size_t i = 0; i < resolved->arg_count && function->parts != 0; i++) {
        if (!arguments[i].is_part)
            continue;
        enum sql_part part = (enum sql_part)arguments[i].expr->constant.int64;
        if ((function->parts >> part & 1) == 0)
            return unfit_part(binding, function, at, part, resolved);
    }
    return status_ok();
}

/* Lambdas are bound for the row that is taken, and only once: they may be nested. */
status resolve_function(const struct binding *binding, const char *name, uint32_t at,
                        struct argument *arguments, size_t count, bool is_safe,
                        const struct sql_expr **out)
{
    const struct sql_function *best = NULL;
    int least = INT_MAX;
    size_t row = 0;
    for (const struct sql_function *f; (f = function_at(name, &row)) != NULL && least > 0;) {
        bool fits;
        int cost;
        TRY(match_signature(binding, f->signature, arguments, count, &fits, &cost, NULL));
        if (fits && cost < least) {
            best = f;
            least = cost;
        }
    }
    if (best == NULL)
        return no_matching_signature(binding, name, at, arguments, count);
    if (is_safe && (best->flags & SQL_NOT_SAFE) != 0)
        return sql_error(binding->analyzer->analysis->text, at,
                         "Function %s does not support SAFE error mode", name);
    bool fits;
    struct resolved resolved;
    TRY(match_signature(binding, best->signature, arguments, count, &fits, &least, &resolved));
    if (!fits)
        return no_matching_signature(binding, name, at, arguments, count);
    TRY(check_parts(binding, best, at, arguments, &resolved));
    return make_call(binding, best, at, &resolved, is_safe, out);
}

status resolve_operator(const struct binding *binding, const char *name, uint32_t at,
                        const struct sql_expr *const *args, size_t count,
                        const struct sql_expr **out)
{
    struct argument *arguments = arena_zalloc(binding->analyzer->arena, count * sizeof *arguments);
    if (arguments == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        arguments[i].expr = args[i];
    return resolve_function(binding, name, at, arguments, count, false, out);
}
