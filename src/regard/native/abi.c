/* The version, sizes, offsets and values as compiled, which are compared with native/abi.py at load time. */
#include "int8_quantization.h"
#include "regard.h"
#include <stddef.h>

#define SIZE(type) {"sizeof(" #type ")", sizeof(type)}
#define FIELD(type, field) {"offsetof(" #type ", " #field ")", offsetof(type, field)}
#define VALUE(name) {#name, name}

static const regard_abi_constant CONSTANTS[] = {
    VALUE(REGARD_OK),
    VALUE(REGARD_OUT_OF_MEMORY),
    VALUE(REGARD_INVALID_ARGUMENT),
    VALUE(REGARD_TOKEN_PAD),
    VALUE(REGARD_TOKEN_UNK),
    VALUE(REGARD_TOKEN_BOS),
    VALUE(REGARD_TOKEN_EOS),
    VALUE(REGARD_ARCHITECTURE_TRANSFORMER),
    VALUE(REGARD_ARCHITECTURE_RECURRENT),
    VALUE(REGARD_ACTIVATION_RELU),
    VALUE(REGARD_ACTIVATION_GELU),
    VALUE(REGARD_ACTIVATION_GELU_TANH),
    VALUE(REGARD_ACTIVATION_SILU),
    VALUE(REGARD_ACTIVATION_SWIGLU),
    VALUE(REGARD_ACTIVATION_GEGLU),
    VALUE(REGARD_ATTEND_NEVER),
    VALUE(REGARD_ATTEND_BEFORE),
    VALUE(REGARD_ATTEND_AFTER),
    VALUE(REGARD_SCORE_ADDITIVE),
    VALUE(REGARD_SCORE_BILINEAR),
    VALUE(REGARD_SCORE_DOT),
    VALUE(REGARD_EXTENT_GLOBAL),
    VALUE(REGARD_EXTENT_LOCAL_M),
    VALUE(REGARD_EXTENT_LOCAL_P),
    SIZE(regard_abi_constant),
    FIELD(regard_abi_constant, name),
    FIELD(regard_abi_constant, value),
    SIZE(regard_tensor),
    FIELD(regard_tensor, name),
    FIELD(regard_tensor, data),
    FIELD(regard_tensor, dimensions),
    FIELD(regard_tensor, shape),
    SIZE(regard_setting),
    FIELD(regard_setting, name),
    FIELD(regard_setting, value),
    SIZE(regard_model_description),
    FIELD(regard_model_description, struct_size),
    FIELD(regard_model_description, architecture),
    FIELD(regard_model_description, int8),
    FIELD(regard_model_description, tensors),
    FIELD(regard_model_description, tensor_count),
    FIELD(regard_model_description, settings),
    FIELD(regard_model_description, setting_count),
    SIZE(regard_search_request),
    FIELD(regard_search_request, struct_size),
    FIELD(regard_search_request, source_count),
    FIELD(regard_search_request, source_tokens),
    FIELD(regard_search_request, source_offsets),
    FIELD(regard_search_request, max_lengths),
    FIELD(regard_search_request, shortlist_tokens),
    FIELD(regard_search_request, shortlist_offsets),
    FIELD(regard_search_request, beam_size),
    FIELD(regard_search_request, nbest),
    FIELD(regard_search_request, patient),
    FIELD(regard_search_request, max_length),
    FIELD(regard_search_request, length_penalty),
    FIELD(regard_search_request, output_tokens),
    FIELD(regard_search_request, output_lengths),
    FIELD(regard_search_request, output_log_probs),
};

/* The version of the header that the library was compiled with. */
int64_t regard_abi_version(void) { return REGARD_ABI_VERSION; }

/* CONSTANTS, which are static and must not be freed; *count is set to their number. */
const regard_abi_constant *regard_abi_constants(int64_t *count) {
    *count = sizeof CONSTANTS / sizeof *CONSTANTS;
    return CONSTANTS;
}

/* Floats in a vec. */
int64_t regard_simd_lanes(void) { return LANES; }

/* 1 if int8 products were compiled in, else 0: the library is compiled for the processor that runs it. */
int64_t regard_int8_supported(void) { return INT8_SUPPORTED; }
