"""Names of tensors' attributes: who has others is something else."""

from __future__ import annotations

__all__ = ["METHODS", "PROPERTIES"]

_METHODS = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr adjoint all allclose amax amin aminmax angle any
arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_strided as_strided_scatter
as_subclass asin asinh atan atan2 atanh backward baddbmm bernoulli bfloat16 bincount bitwise_and bitwise_not
bitwise_or bitwise_xor bmm bool broadcast_to byte ceil char chunk clamp clamp_max clamp_min clip clone coalesce conj
conj_physical contiguous copy copysign corrcoef cos cosh count_nonzero cov cpu cross cuda cummax cummin cumprod cumsum
data_ptr deg2rad dense_dim det detach diag diag_embed diagflat diagonal diagonal_scatter diff digamma dim dist div
divide dot double dsplit element_size eq equal erf erfc erfinv exp exp2 expand expand_as expm1 exponential fill fix
flatten flip fliplr flipud float float_power floor floor_divide fmax fmin fmod frac frexp gather gcd ge get_device
greater greater_equal gt half hardshrink heaviside histc histogram hsplit hypot i0 index index_add index_fill
index_put index_reduce index_select inner int inverse is_complex is_contiguous is_floating_point is_nonzero is_pinned
isclose isfinite isinf isnan isneginf isposinf isreal item kron kthvalue lcm ldexp le lerp less less_equal lgamma log
log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor
logit logsumexp long lt masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max maximum mean
median min minimum mm mode moveaxis movedim mul multinomial multiply mv nan_to_num nanmean nanmedian nanquantile
nansum narrow ndimension ne neg negative nelement new_empty new_empty_strided new_full new_ones new_tensor new_zeros
nextafter nonzero nonzero_static norm normal not_equal numel numpy outer permute pin_memory pinverse polygamma
positive pow prelu prod quantile rad2deg random ravel reciprocal record_stream register_hook relu remainder renorm
repeat repeat_interleave requires_grad reshape reshape_as resolve_conj resolve_neg retain_grad roll rot90 round rsqrt
scatter scatter_add scatter_reduce select select_scatter sgn short sigmoid sign signbit sin sinc sinh size slogdet
softmax sort split sqrt square squeeze std stride sub subtract sum sum_to_size svd swapaxes swapdims t take
take_along_dim tan tanh tensor_split tile to to_dense to_padded_tensor to_sparse tolist topk trace transpose tril triu
true_divide trunc type type_as unbind unflatten unfold uniform unique unique_consecutive unsqueeze var vdot view
view_as vsplit where xlogy zero
"""
_PROPERTIES = """
H T data device dtype grad grad_fn imag is_cuda is_leaf is_sparse layout mH mT ndim real requires_grad retains_grad
shape
"""
METHODS = frozenset(_METHODS.split())
"""Without the ``_`` of those that work in place."""
PROPERTIES = frozenset(_PROPERTIES.split())
