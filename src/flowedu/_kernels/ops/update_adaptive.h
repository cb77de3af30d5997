/* Updates with a rate per element or per parameter: rules for update.h. Names with _update belong to job
 * functions (flow.optimizer, OneFlow 0.4), names with _step to tensors (flow.optim); rules with the same
 * formula are shared. The numbers are beta1, beta2, epsilon unless noted otherwise. */
#include "update_sgd.h"

/* ---- Adam. The flag: correct the bias. */
FE_UPDATE_LOOP(adam,
               const T a = b1 * m[i] + r1 * g; const T c = b2 * v[i] + r2 * g * g; m[i] = a; v[i] = c;
               w[i] -= lr * (a / (FE_ROOT(c) + eps)) + decay * w[i])
static void adam_begin(fe_numbers *u, double t) { /* weight decay also uses the corrected rate */
    if (u->flag) u->lr *= sqrt(1.0 - pow(u->beta2, t)) / (1.0 - pow(u->beta1, t));
}

FE_UPDATE_LOOP(adam_both,
               const T a = b1 * m[i] + r1 * g; const T c = b2 * v[i] + r2 * g * g; m[i] = a; v[i] = c;
               w[i] -= rate * (a / (FE_ROOT(c) * c2 + eps)) + decay * w[i])
static void correct_both(fe_numbers *u, double t) {
    if (u->flag) u->c1 = 1 / (1 - pow(u->beta1, t)), u->c2 = 1 / sqrt(1 - pow(u->beta2, t));
}

FE_UPDATE_LOOP(amsgrad,
               const T a = b1 * m[i] + r1 * g; T c = b2 * v[i] + r2 * g * g; m[i] = a; v[i] = c;
               c = s[i] > c ? s[i] : c; /* a NaN in c stays */
               s[i] = c; w[i] -= rate * (a / (FE_ROOT(c) * c2 + eps)) + decay * w[i])

/* ---- RMSProp. Numbers: decay rate, -, epsilon. */
FE_UPDATE_LOOP(rmsprop,
               const T a = b1 * m[i] + r1 * g * g; m[i] = a;
               w[i] -= lr * (g / FE_ROOT(a + eps)) + decay * w[i])
FE_UPDATE_LOOP(rmsprop_centered,
               const T a = b1 * m[i] + r1 * g * g; const T c = b1 * v[i] + r1 * g; m[i] = a; v[i] = c;
               const T variance = a - c * c; /* rounding may take it below 0 */
               w[i] -= lr * (g / FE_ROOT((variance > 0 ? variance : 0) + eps)) + decay * w[i])

/* ---- Adagrad. Numbers: lr_decay, -, epsilon. Adadelta. Numbers: rho, -, epsilon. */
FE_UPDATE_LOOP(adagrad, m[i] += g * g; w[i] -= lr * (g / (FE_ROOT(m[i]) + eps)) + decay * w[i])
static void adagrad_begin(fe_numbers *u, double t) { u->lr /= 1 + (t - 1) * u->beta1; }

FE_UPDATE_LOOP(adadelta,
               const T a = b1 * m[i] + r1 * g * g; const T c = FE_ROOT(v[i] + eps) / FE_ROOT(a + eps) * g; m[i] = a;
               v[i] = b1 * v[i] + r1 * c * c; w[i] -= lr * c + decay * w[i])

/* ---- LARS: momentum with a rate scaled by the norms of weight and gradient. Numbers: beta, coefficient,
 * epsilon. */
FE_UPDATE_LOOP(lars_norms, FE_NORMS(g))
static void lars_each(fe_numbers *u, const fe_view *group, double weight_decay) {
    if (u->w_norm > 0 && u->g_norm > 0)
        u->lr *= u->beta2 * u->w_norm / (u->epsilon + u->g_norm + weight_decay * u->w_norm);
}

/* ---- LAMB: Adam's step with a rate scaled by the norms of weight and step. */
static void lamb_rate(fe_numbers *u, const fe_view *group, double weight_decay) {
    if (u->w_norm > 0 && u->g_norm > 0) u->lr *= u->w_norm / u->g_norm;
}

/* lamb_update stores the powers of beta1 and beta2, numbers 4 and 5 of a group, for its corrections. */
FE_UPDATE_LOOP(lamb_norms,
               m[i] = b1 * m[i] + r1 * g; v[i] = b2 * v[i] + r2 * g * g;
               FE_NORMS(c1 * m[i] / (FE_ROOT(c2 * v[i]) + eps)))
FE_UPDATE_LOOP(lamb, w[i] -= lr * (c1 * m[i] / (FE_ROOT(c2 * v[i]) + eps)) + decay * w[i])
static void lamb_each(fe_numbers *u, const fe_view *group, double weight_decay) {
    u->c1 = 1 / (1 - fe_number(&group[4])), u->c2 = 1 / (1 - fe_number(&group[5]));
    lamb_rate(u, group, weight_decay);
}
static void lamb_end(const fe_numbers *u, const fe_view *group) {
    for (int k = 4; k < 6; k++) fe_set_number(&group[k], fe_number(&group[k]) * (k == 4 ? u->beta1 : u->beta2));
}

FE_UPDATE_LOOP(lamb_both_norms,
               m[i] = b1 * m[i] + r1 * g; v[i] = b2 * v[i] + r2 * g * g;
               FE_NORMS(c1 * m[i] / (FE_ROOT(v[i]) * c2 + eps)))
FE_UPDATE_LOOP(lamb_both, w[i] -= lr * (c1 * m[i] / (FE_ROOT(v[i]) * c2 + eps)) + decay * w[i])

#define FE_ADAPTIVE_RULES(X)                                                                                       \
    X(adam_update, 4, adam, .begin = adam_begin)                                                                   \
    X(adam_step, 4, adam_both, .begin = correct_both)                                                              \
    X(amsgrad_step, 5, amsgrad, .begin = correct_both)                                                             \
    X(rmsprop_update, 3, rmsprop)                                                                                  \
    X(rmsprop_centered_update, 4, rmsprop_centered)                                                                \
    X(adagrad_step, 3, adagrad, .begin = adagrad_begin)                                                            \
    X(adadelta_step, 4, adadelta)                                                                                  \
    X(lars_update, 3, momentum, .norms = lars_norms, .each = lars_each)                                            \
    X(lamb_update, 6, lamb, .single = 2, .norms = lamb_norms, .each = lamb_each, .end = lamb_end)                  \
    X(lamb_step, 4, lamb_both, .norms = lamb_both_norms, .begin = correct_both, .each = lamb_rate)
