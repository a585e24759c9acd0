/* Reads a model's settings and tensors from its description, by name (weights.c).
 *
 * The first error is kept, with a sentence about it; after it, every function returns at once with zero, so that
 * callers need not check each call. No function is thread-safe on the same reader.
 */
#pragma once
#include "model.h"

typedef struct {
    const regard_model_description *description;
    uint8_t *setting_read, *tensor_read; /* which have been found so far */
    int32_t status;                      /* regard_status */
    char *error;
    int64_t error_size;
} WeightReader;

#define FORMATTED(position, first) __attribute__((format(printf, position, first))) /* checked as printf is */

/* -1 if there is no memory. To be freed by weights_close, also then. */
int weights_open(WeightReader *r, const regard_model_description *description, char *error, int64_t error_size);

/* Frees what weights_open has allocated, but not `r` itself. */
void weights_close(WeightReader *r);

/* Reports an error, unless there was one before. */
void weights_fail(WeightReader *r, int32_t status, const char *format, ...) FORMATTED(3, 4);

/* Reports a setting or tensor that has not been read. */
void weights_check_all_read(WeightReader *r);

/* A setting; the name is SIDE.NAME, or NAME if side is NULL. An integer must be between minimum and maximum. */
int64_t weights_integer(WeightReader *r, const char *side, const char *name, int64_t minimum, int64_t maximum);
float weights_number(WeightReader *r, const char *side, const char *name);

/* A copy of a tensor [rows, columns], or [rows] if columns is 0, to be freed by free; NULL after an error. The name is
 * formatted as by printf. */
float *weights_copy(WeightReader *r, int64_t rows, int64_t columns, const char *name, ...) FORMATTED(4, 5);

/* A linear layer from NAME.weight [outputs, inputs] and, if it has one, NAME.bias [outputs]. `m` must be zero. */
void weights_linear(WeightReader *r, Linear *m, int64_t outputs, int64_t inputs, int has_bias, const char *name, ...)
    FORMATTED(6, 7);

/* The output layer, from output.weight [vocabulary_size, width] and output.bias, if the setting output_bias is 1. */
void weights_output_layer(WeightReader *r, regard_model *m);

/* Models that can be made. NULL after an error. */
regard_model *transformer_model_new(WeightReader *r);
regard_model *recurrent_model_new(WeightReader *r);
