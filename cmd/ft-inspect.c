/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-inspect: look into indexes, grids and results. See ft-inspect(1).
 */
#include "inspect.h"

int main(int argc, char **argv)
{
    static const ft_subcommand rows[] = {
        {"stats", "print the size, sections, levels and degrees of an index",
         ft_inspect_stats},
        {"verify", "check every invariant of an index", ft_inspect_verify},
        {"dump", "print all keys of an index, in order", ft_inspect_dump},
        {"lookup", "print the key number of each key given", ft_inspect_lookup},
        {"children", "print the tokens that can follow a prefix", ft_inspect_children},
        {"predict", "print the keys that start with a prefix", ft_inspect_predict},
        {"grid", "print what a proposal grid holds", ft_inspect_grid},
        {"results", "print a result stream as text", ft_inspect_results},
        {NULL}};
    if (!ft_start("ft-inspect"))
        return FT_EXIT_FAILED;
    return ft_subcommands_run("ft-inspect", "look into indexes, grids and results",
                              rows, argc, argv);
}
