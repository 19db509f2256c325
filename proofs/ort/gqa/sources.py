"""Where the GQA obligations come from: documents, functions and the revisions they speak of."""

from __future__ import annotations

from routeproof.spec.function import Source

__all__ = ["DESIGN", "FUNCTION_SOURCES", "LADDER"]

_BERT = "onnxruntime/contrib_ops/cuda/bert"

DESIGN = Source("onnxruntime PR #32944 (design document)", "Case A and Case B", "2026")
LADDER = {
    "newest": Source(f"{_BERT}/group_query_attention.cc", "ComputeInternal", "bcdb68db"),
    "older": Source(f"{_BERT}/group_query_attention.cc", "ComputeInternal", "mid 2026"),
}
FUNCTION_SOURCES = {
    "preparation": Source(
        f"{_BERT}/group_query_attention_workspace.cc", "GetGQAPreparationRecipe", "bcdb68db"
    ),
    "xqa": Source(
        f"{_BERT}/group_query_attention_workspace_xqa_flash.cc",
        "GetGQAXqaWorkspaceRecipe",
        "bcdb68db",
    ),
    "flash": Source(
        f"{_BERT}/group_query_attention_workspace_xqa_flash.cc",
        "GetGQAFlashWorkspaceRecipe",
        "bcdb68db",
    ),
    "mea": Source(
        f"{_BERT}/group_query_attention_workspace_mea_unfused.cc",
        "GetGQAMemoryEfficientWorkspaceRecipe",
        "f3ecb97e",
    ),
    "unfused": Source(
        f"{_BERT}/group_query_attention_workspace_mea_unfused.cc",
        "GetGQAUnfusedWorkspaceRecipe",
        "f3ecb97e",
    ),
    "complete": Source(
        f"{_BERT}/group_query_attention_workspace_routes.cc",
        "GetGQACompleteWorkspaceRecipe",
        "September 2026",
    ),
    "bounds": Source(
        f"{_BERT}/group_query_attention_workspace_bounds.cc",
        "GetGQAWorkspaceAggregateForBounds",
        "07a61dfa",
    ),
    "eligibility": Source(
        f"{_BERT}/group_query_attention_eligibility.h", "IsGQA...EligibleSeqFree", "0994faae"
    ),
    "ladder": Source(f"{_BERT}/group_query_attention.cc", "ComputeInternal", "mid 2026, bcdb68db"),
    "classifier": Source(
        "onnxruntime/contrib_ops/cpu/bert/group_query_attention_helper.h", "CheckInputs", "f5689c80"
    ),
    "flash_runtime": Source(
        f"{_BERT}/flash_attention/flash_api.cc",
        "get_num_splits_and_buffer_sizes, is_supported",
        "81fd9888",
    ),
}
