/* Complete Flash routes one state after another: what the NumPy columns are compared with.
 *
 * The same facts as routeproof's model ort.gqa.complete with backend `flash` and no fast decode,
 * checks in the same order. Every product and sum is checked against size_t.
 */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The columns, in the order in which the caller lists them. */
#define FIELDS(X)                                                                              \
    X(qkv_element_size) X(cache_element_size) X(batch_size) X(sequence_length) X(num_heads)    \
    X(kv_num_heads) X(head_size) X(present_kv_cache_capacity) X(past_kv_cache_capacity)        \
    X(kv_cache_bit_width) X(k_quantization) X(v_quantization) X(is_windowed_kv_cache)          \
    X(is_first_prompt) X(do_rotary) X(is_packed_qkv) X(use_qk_norm)                            \
    X(requires_separate_past_buffer) X(total_sequence_length) X(local_window_size)

#define POINTER(name) const int64_t *name;
#define VALUE(name) int64_t name;
#define LOAD(name) columns->name[row],

struct columns { FIELDS(POINTER) };
struct state { FIELDS(VALUE) };

enum status { STATUS_OK, STATUS_INVALID_ARGUMENT, STATUS_OVERFLOW, STATUS_UNAVAILABLE };
enum { MAX_SPLITS = 128, QUANTIZATION_INVALID = 3 };

static bool times(uint64_t *value, uint64_t factor) {
    return !__builtin_mul_overflow(*value, factor, value);
}

static bool plus(uint64_t *value, uint64_t term) {
    return !__builtin_add_overflow(*value, term, value);
}

static bool align(uint64_t *value) {
    bool fits = plus(value, 255);
    *value &= ~UINT64_C(255);
    return fits;
}

/* Place a region at the next multiple of 256; an empty one does not move the cursor. */
static bool carve(uint64_t *cursor, uint64_t size) {
    return size == 0 || (align(cursor) && plus(cursor, size));
}

static bool is_positive_int32(int64_t value) { return value >= 1 && value <= INT32_MAX; }

static bool is_quantized(const struct state *s) {
    return s->k_quantization != 0 || s->v_quantization != 0;
}

static bool uses_staging(const struct state *s) {
    return s->is_windowed_kv_cache && s->sequence_length > 1;
}

/* Of a valid state only: the sum of any two integers may not be representable. */
static int64_t effective_capacity(const struct state *s) {
    return s->present_kv_cache_capacity + (uses_staging(s) ? s->sequence_length : 0);
}

static int64_t cache_row_bytes(const struct state *s) {
    return s->kv_cache_bit_width == 0 ? s->head_size * s->cache_element_size
                                      : s->head_size * s->kv_cache_bit_width / 8;
}

static bool is_prepared(const struct state *s) {
    int64_t element = s->cache_element_size, bits = s->kv_cache_bit_width;
    return is_positive_int32(s->batch_size) && is_positive_int32(s->sequence_length) &&
           is_positive_int32(s->num_heads) && is_positive_int32(s->kv_num_heads) &&
           is_positive_int32(s->head_size) && s->num_heads % s->kv_num_heads == 0 &&
           s->qkv_element_size == 2 && is_positive_int32(s->present_kv_cache_capacity) &&
           (element == 1 || element == 2) && s->head_size % 8 == 0 &&
           (bits == 0 || bits == 4 || bits == 8) && (bits == 0 || element == 1) &&
           s->k_quantization != QUANTIZATION_INVALID &&
           s->v_quantization != QUANTIZATION_INVALID && s->past_kv_cache_capacity >= 0 &&
           s->past_kv_cache_capacity <= INT32_MAX &&
           !(s->requires_separate_past_buffer && s->past_kv_cache_capacity == 0) &&
           !(s->is_windowed_kv_cache && cache_row_bytes(s) % 16 != 0) &&
           !(uses_staging(s) && effective_capacity(s) > INT32_MAX) &&
           !(s->requires_separate_past_buffer && s->is_windowed_kv_cache);
}

/* Bytes of preprocessed Q, of quantised new K and V, and of a cache read dequantised. */
static bool preprocess(const struct state *s, uint64_t *bytes) {
    bool quantized = is_quantized(s);
    bool dequantizes = quantized && !s->is_first_prompt;
    uint64_t query = (uint64_t)s->batch_size;
    uint64_t fresh = quantized && s->is_first_prompt ? 2 : 0;
    uint64_t cache = dequantizes ? 2 : 0;
    if (!(times(&query, s->sequence_length) && times(&query, s->num_heads) &&
          times(&query, s->head_size) && times(&fresh, s->batch_size) &&
          times(&fresh, s->sequence_length) && times(&fresh, s->kv_num_heads) &&
          times(&fresh, s->head_size) && times(&cache, s->batch_size) &&
          times(&cache, effective_capacity(s)) && times(&cache, s->kv_num_heads) &&
          times(&cache, s->head_size)))
        return false;
    bool copies = s->do_rotary || s->is_packed_qkv || s->use_qk_norm || quantized;
    *bytes = copies ? query : 0;
    return plus(bytes, fresh) && plus(bytes, cache) && times(bytes, s->qkv_element_size) &&
           plus(bytes, dequantizes ? 256 : 0);
}

static enum status preparation(const struct state *s, uint64_t *total) {
    if (!is_prepared(s)) return STATUS_INVALID_ARGUMENT;
    uint64_t row = (uint64_t)cache_row_bytes(s), cursor = 0;
    if (s->requires_separate_past_buffer) {
        uint64_t past = (uint64_t)s->batch_size;
        if (!(times(&past, s->kv_num_heads) && times(&past, s->past_kv_cache_capacity) &&
              times(&past, row) && carve(&cursor, past)))
            return STATUS_OVERFLOW;
    }
    if (s->is_windowed_kv_cache) {
        uint64_t tensor = (uint64_t)s->batch_size;
        if (!(times(&tensor, s->kv_num_heads) && times(&tensor, effective_capacity(s)) &&
              times(&tensor, row)))
            return STATUS_OVERFLOW;
        bool fits = uses_staging(s) ? carve(&cursor, tensor) && carve(&cursor, tensor)
                                    : times(&tensor, 2) && carve(&cursor, tensor);
        if (!fits) return STATUS_OVERFLOW;
    }
    uint64_t lengths = s->is_windowed_kv_cache ? 4 * 6 : 4 * 3, bytes;
    if (!(times(&lengths, s->batch_size) && carve(&cursor, lengths))) return STATUS_OVERFLOW;
    if (!(preprocess(s, &bytes) && carve(&cursor, bytes))) return STATUS_OVERFLOW;
    *total = cursor;
    return STATUS_OK;
}

static int ceil_div(int one, int other) { return (one + other - 1) / other; }

static bool is_eligible(int splits, int blocks) {
    return splits == 1 || ceil_div(blocks, splits) != ceil_div(blocks, splits - 1);
}

static int search_splits(int work, int blocks, int multiprocessors) {
    float efficiency[MAX_SPLITS], best = 0.0f;
    int limit = blocks < multiprocessors ? blocks : multiprocessors;
    if (limit > MAX_SPLITS) limit = MAX_SPLITS;
    for (int splits = 1; splits <= limit; ++splits) {
        efficiency[splits - 1] = 0.0f;
        if (!is_eligible(splits, blocks)) continue;
        float waves = (float)(work * splits) / (float)multiprocessors;
        efficiency[splits - 1] = waves / ceilf(waves);
        if (efficiency[splits - 1] > best) best = efficiency[splits - 1];
    }
    for (int splits = 1; splits <= limit; ++splits)
        if (is_eligible(splits, blocks) && efficiency[splits - 1] >= 0.85 * best) return splits;
    return 1;
}

static int64_t block_n(int64_t head_size) {
    return head_size <= 64 ? 256 : head_size <= 128 ? 128 : 64;
}

/* The log-sum-exp rows are formed first: where they fit, so does the work. */
static enum status flash(const struct state *s, int multiprocessors, uint64_t *total,
                         int *splits, bool *searches) {
    int64_t length = s->total_sequence_length, window = s->local_window_size;
    if (s->is_windowed_kv_cache && length > effective_capacity(s)) length = effective_capacity(s);
    if (!is_positive_int32(length) || !(window == -1 || is_positive_int32(window)))
        return STATUS_INVALID_ARGUMENT;
    if (s->head_size > 256) return STATUS_UNAVAILABLE;
    uint64_t lse = 4, cursor = 0;
    if (!(times(&lse, s->batch_size) && times(&lse, s->num_heads) &&
          times(&lse, s->sequence_length) && carve(&cursor, lse)))
        return STATUS_OVERFLOW;
    int64_t work = s->batch_size * s->num_heads * ((s->sequence_length + 63) / 64);
    int64_t block = block_n(s->head_size);
    *searches = (float)work < 0.8f * (float)multiprocessors;
    *splits = *searches ? search_splits((int)work, (int)((length + block - 1) / block),
                                        multiprocessors)
                        : 1;
    if (*splits > 1) {
        uint64_t partial = 4, output;
        if (!(times(&partial, *splits) && times(&partial, s->batch_size) &&
              times(&partial, s->sequence_length) && times(&partial, s->num_heads)))
            return STATUS_OVERFLOW;
        output = partial;
        if (!(times(&output, (s->head_size + 31) / 32 * 32) && carve(&cursor, partial) &&
              carve(&cursor, output)))
            return STATUS_OVERFLOW;
    }
    *total = cursor;
    return STATUS_OK;
}

/* Status, bytes and splits of every state; returns how many reach the search for splits.
 * `multiprocessors` is positive and below 2^24, so that it is exact in float32.
 */
int64_t sweep_flash(const struct columns *columns, int64_t states, int multiprocessors,
                    uint8_t *status, uint64_t *total_workspace_bytes,
                    uint8_t *selected_split_count) {
    int64_t searched = 0;
    for (int64_t row = 0; row < states; ++row) {
        const struct state state = {FIELDS(LOAD)};
        uint64_t total = 0, backend = 0;
        int splits = 1;
        bool searches = false;
        enum status result = preparation(&state, &total);
        if (result == STATUS_OK)
            result = flash(&state, multiprocessors, &backend, &splits, &searches);
        if (result == STATUS_OK && !carve(&total, backend)) result = STATUS_OVERFLOW;
        searched += searches;
        status[row] = (uint8_t)result;
        total_workspace_bytes[row] = result == STATUS_OK ? total : 0;
        selected_split_count[row] = result == STATUS_OK ? (uint8_t)splits : 1;
    }
    return searched;
}
