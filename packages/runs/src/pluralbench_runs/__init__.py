"""What every PluralBench command shares: recipe, output directory, resume, progress, errors to exit status."""

from pluralbench_runs.atomic_files import replacing, write_text
from pluralbench_runs.canonical import Json, canonical_json, digest, file_digest, rng_for
from pluralbench_runs.cluster import ClusterConfig, ClusterError
from pluralbench_runs.command import Program, run
from pluralbench_runs.errors import OutputError, RecipeError, UserError, did_you_mean, one_line
from pluralbench_runs.installing import install_command, install_weights_command, shell_line
from pluralbench_runs.model_config import check_model_folder, config_error
from pluralbench_runs.names import PathName, RelativePath, SplitName, inside, path_name, split_name
from pluralbench_runs.output import Output, is_made_by, output_directory, readable, replaceable
from pluralbench_runs.places import Place, public_place
from pluralbench_runs.progress import Meter, log_status, progress
from pluralbench_runs.recipe import (
    FrozenModel,
    Recipe,
    check_recipe,
    content_values,
    describe_difference,
    differing_keys,
    first_validation_error,
    read_recipe,
    recipe_path,
    recipe_values,
    refuse_secrets,
    write_recipe,
)
from pluralbench_runs.regular_files import open_file
from pluralbench_runs.secrets import redacted, secrets
from pluralbench_runs.software import versions
from pluralbench_runs.toml_files import parse_toml, read_toml

__all__ = [
    "ClusterConfig",
    "ClusterError",
    "FrozenModel",
    "Json",
    "Meter",
    "Output",
    "OutputError",
    "PathName",
    "Place",
    "Program",
    "Recipe",
    "RecipeError",
    "RelativePath",
    "SplitName",
    "UserError",
    "canonical_json",
    "check_model_folder",
    "check_recipe",
    "config_error",
    "content_values",
    "describe_difference",
    "did_you_mean",
    "differing_keys",
    "digest",
    "file_digest",
    "first_validation_error",
    "inside",
    "install_command",
    "install_weights_command",
    "is_made_by",
    "log_status",
    "one_line",
    "open_file",
    "output_directory",
    "parse_toml",
    "path_name",
    "progress",
    "public_place",
    "read_recipe",
    "read_toml",
    "readable",
    "recipe_path",
    "recipe_values",
    "redacted",
    "refuse_secrets",
    "replaceable",
    "replacing",
    "rng_for",
    "run",
    "secrets",
    "shell_line",
    "split_name",
    "versions",
    "write_recipe",
    "write_text",
]
