# Placed as BenchflowGuard.pm, for every Perl of the verifier's box: a module of the image's wins over one of the same
# name that the agent added, and the standard library gets none from the agent that it names itself and the image does
# not have. Uses nothing but what is built in.
package BenchflowGuard;

my ($folder, @core, %agents);

sub say_it {
    my ($what, $path) = @_;
    open my $out, '>>', "$folder/seen/perl-$$" or return;
    print {$out} "$what $path\n";
    close $out;
}

# The file whose code asks for a module, past what was made up while running.
sub asker {
    for (my $level = 1; my @frame = caller $level; $level++) {
        return $frame[1] unless $frame[1] eq __FILE__ or $frame[1] =~ /^\(eval/;
    }
    return '';
}

# A name that the library was handed over does not stand in its text.
sub names {
    my ($asker, $file) = @_;
    (my $name = $file) =~ s{/}{::}g;
    $name =~ s/\.p[ml]$//;
    open my $in, '<', $asker or return 0;
    local $/;
    return <$in> =~ /(?<![\w:])(?:\Q$name\E|\Q$file\E)(?!\w|::)/;
}

sub find {
    my ($self, $file) = @_;
    my ($found, @others) = grep { -e } map { "$_/$file" } grep { !ref } @INC;
    return unless defined $found and exists $agents{$found};
    my $asker = asker();
    my ($images) = grep { !exists $agents{$_} } @others;
    if (defined $images and not exists $agents{$asker} and open my $in, '<', $images) {
        say_it('module', $found);
        $INC{$file} = $images;
        return $in;
    }
    if (grep { index($asker, "$_/") == 0 } @core and names($asker, $file)) {
        say_it('module', $found);
        die "Can't locate $file in \@INC (of the image there is none)\n";
    }
    say_it('ran', $found) unless exists $agents{$asker};
    return;
}

BEGIN {
    ($folder) = __FILE__ =~ m{^(.*)/};
    if (open my $in, '<', "$folder/perl.txt") {
        while (my $line = <$in>) { chomp $line; $agents{$line} = 1 }
        close $in;
    }
    @INC = grep { ref or $_ ne $folder } @INC;
    @core = grep { !ref and (-e "$_/strict.pm" or -e "$_/Config.pm") } @INC;
    unshift @INC, \&find unless exists $agents{$0};
}

1;
