"""Building blocks of PluralBench commands: recipes, output directories that resume, progress bars and errors."""

from pluralbench_runs.atomic_files import atomic_write, check_output, output_file, write_text
from pluralbench_runs.canonical import Json, Seed, canonical_json, digest, file_digest, rng_for
from pluralbench_runs.cluster import ClusterConfig, ClusterError
from pluralbench_runs.command import Program, run
from pluralbench_runs.errors import OutputError, RecipeError, UserError, did_you_mean, one_line, plural
from pluralbench_runs.install_hints import install_command, install_weights_command, shell_command
from pluralbench_runs.interruption import keeping_work
from pluralbench_runs.locations import Location, PathText, check_commit, public_location
from pluralbench_runs.model_config import CONFIG_FILES, MODULES_FILE, check_model_folder
from pluralbench_runs.names import (
    FolderName,
    PathName,
    RelativePath,
    SplitName,
    check_path_name,
    check_split_name,
    safe_join,
    validate_folder_name,
)
from pluralbench_runs.output import (
    Output,
    has_work,
    make_readable,
    matches_recipe,
    move_aside,
    output_directory,
    resolve_output_path,
)
from pluralbench_runs.progress import Meter, log_status, progress, step
from pluralbench_runs.recipe import (
    FrozenModel,
    Recipe,
    check_no_secrets,
    check_recipe,
    content_values,
    describe_difference,
    differing_keys,
    first_validation_error,
    read_recipe,
    recipe_path,
    recipe_values,
    write_recipe,
)
from pluralbench_runs.regular_files import check_file, open_file, read_small
from pluralbench_runs.secrets import environment_secrets, redact
from pluralbench_runs.software import versions
from pluralbench_runs.toml_files import parse_toml, read_toml

__all__ = [
    "CONFIG_FILES",
    "MODULES_FILE",
    "ClusterConfig",
    "ClusterError",
    "FolderName",
    "FrozenModel",
    "Json",
    "Location",
    "Meter",
    "Output",
    "OutputError",
    "PathName",
    "PathText",
    "Program",
    "Recipe",
    "RecipeError",
    "RelativePath",
    "Seed",
    "SplitName",
    "UserError",
    "atomic_write",
    "canonical_json",
    "check_commit",
    "check_file",
    "check_model_folder",
    "check_no_secrets",
    "check_output",
    "check_path_name",
    "check_recipe",
    "check_split_name",
    "content_values",
    "describe_difference",
    "did_you_mean",
    "differing_keys",
    "digest",
    "environment_secrets",
    "file_digest",
    "first_validation_error",
    "has_work",
    "install_command",
    "install_weights_command",
    "keeping_work",
    "log_status",
    "make_readable",
    "matches_recipe",
    "move_aside",
    "one_line",
    "open_file",
    "output_directory",
    "output_file",
    "parse_toml",
    "plural",
    "progress",
    "public_location",
    "read_recipe",
    "read_small",
    "read_toml",
    "recipe_path",
    "recipe_values",
    "redact",
    "resolve_output_path",
    "rng_for",
    "run",
    "safe_join",
    "shell_command",
    "step",
    "validate_folder_name",
    "versions",
    "write_recipe",
    "write_text",
]
